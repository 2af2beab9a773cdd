"""What a world consists of, how its parts are named, and where they are reached.

A subject is something that can go wrong on its own: ``chain/56``, ``rpc/56/2`` (an endpoint), ``indexer/56``,
``hosted-indexer/56``, ``ppoi`` (the node), ``ppoi/56`` (what it has of one network), ``broadcasters`` (the node that
hears them), ``broadcasters/56`` (those of one chain), ``messaging``, and the responders of a chain by their names.
An address is where a subject is reached over HTTP, and what a fault is ordered for.
"""

from string import ascii_lowercase
from typing import Final, Literal, NamedTuple

SubjectKind = Literal[
    "chain",
    "endpoint",
    "indexer",
    "graphql-indexer",  # squid/1, hosted/1, subgraph/1
    "document",  # json/1
    "node",  # index-node, ponder, envio: one answer about many chains
    "share",  # index-node/1, ponder/1, envio/1: what it says of one chain
    "ppoi",  # the node
    "network",  # ppoi/1
    "peers",  # the messaging node about itself
    "messages",  # its store and its relay, by which broadcasters are heard
    "broadcasters",  # of one chain
    "responder",  # faucet/1: a service that only answers
    "bundler",
    "relayer",
]


class ChainLayout(NamedTuple):
    """A chain and what there is on it."""

    chain_id: int
    block_ms: int
    first_height: int
    endpoints: int = 3
    confirmations: int = 5  # how far behind the head the indexers stay
    indexer: bool = True
    hosted_indexer: bool = True
    ppoi: bool = True
    members: int = 5  # broadcasters
    responders: tuple[str, ...] = ()  # services of which an answer says no more than that they answer


Layout = tuple[ChainLayout, ...]

# The five chains of the launch, with today's block times; the test network has no hosted indexer.
LAUNCH: Final[Layout] = (
    ChainLayout(1, 12_000, 25_700_000, members=9),
    ChainLayout(42161, 250, 480_000_000, members=6),
    ChainLayout(137, 1_750, 88_000_000, members=7),
    ChainLayout(56, 450, 92_000_000, members=5),
    ChainLayout(11155111, 12_000, 11_300_000, hosted_indexer=False, members=2),
)


class UpstreamAddress(NamedTuple):
    """What answers there, and for which subject. A node that answers for many indexers is no subject itself; nor is
    what only goes wrong by order, since each subject changes what all seeds draw."""

    kind: SubjectKind
    subject: str | None


# The indexer of a chain is one, and speaks all of these.
_INDEXER_KINDS: Final[dict[str, SubjectKind]] = {
    "squid": "graphql-indexer",
    "subgraph": "graphql-indexer",
    "json": "document",
    "index-node": "share",
    "ponder": "share",
    "envio": "share",
}


def subjects(layout: Layout) -> dict[str, SubjectKind]:
    """Everything in the layout that can go wrong."""
    found: dict[str, SubjectKind] = {}
    for chain in layout:
        chain_id = chain.chain_id
        found[f"chain/{chain_id}"] = "chain"
        found |= {f"rpc/{chain_id}/{number}": "endpoint" for number in range(chain.endpoints)}
        if chain.indexer:
            found[f"indexer/{chain_id}"] = "indexer"
        if chain.hosted_indexer:
            found[f"hosted-indexer/{chain_id}"] = "indexer"
        if chain.ppoi:
            found[f"ppoi/{chain_id}"] = "network"
        if chain.members:
            found[f"broadcasters/{chain_id}"] = "broadcasters"
        found |= {f"{service}/{chain_id}": "responder" for service in chain.responders}
    return found | {"ppoi": "ppoi", "broadcasters": "messages", "messaging": "peers"}


def addresses(layout: Layout) -> dict[str, UpstreamAddress]:
    """Every address at which a fault can be ordered."""
    found: dict[str, UpstreamAddress] = {"relayer": UpstreamAddress("relayer", None)}
    for chain in layout:
        found[f"bundler/{chain.chain_id}"] = UpstreamAddress("bundler", None)
        found[f"provider/{chain.chain_id}"] = UpstreamAddress("endpoint", None)
    for subject, kind in subjects(layout).items():
        match subject.split("/"):
            case ["chain", chain_id]:
                found[f"rpc/{chain_id}"] = UpstreamAddress(kind, subject)
            case ["rpc", chain_id, number]:
                found[f"rpc/{chain_id}/{ascii_lowercase[int(number)]}"] = UpstreamAddress(kind, subject)
            case ["indexer", chain_id]:
                found |= {f"{family}/{chain_id}": UpstreamAddress(of, subject) for family, of in _INDEXER_KINDS.items()}
            case ["hosted-indexer", chain_id]:
                found[f"hosted/{chain_id}"] = UpstreamAddress("graphql-indexer", subject)
            case [_, _]:
                found[subject] = UpstreamAddress(kind, subject)
    return found | {
        "index-node": UpstreamAddress("node", None),
        "ponder": UpstreamAddress("node", None),
        "envio": UpstreamAddress("node", None),
        "ppoi": UpstreamAddress("ppoi", "ppoi"),
        "waku/peers": UpstreamAddress("peers", "messaging"),
        "waku/messages": UpstreamAddress("messages", "broadcasters"),
    }
