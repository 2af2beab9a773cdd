"""How the parts of the upstreams are named, and what each is called in the world behind them."""

from string import ascii_lowercase

from lookout.demo.sim.faults import SubjectKind
from lookout.demo.sim.layout import Layout


def subjects_of(layout: Layout) -> dict[str, SubjectKind]:
    """Every part of every upstream that can go wrong on its own."""
    subjects: dict[str, SubjectKind] = {}
    for chain in layout:
        number = chain.chain_id
        subjects[f"rpc/{number}"] = "chain"
        subjects |= {f"rpc/{number}/{letter}": "endpoint" for letter in ascii_lowercase[: chain.endpoints]}
        if chain.indexer:
            subjects |= {f"squid/{number}": "graphql-indexer", f"subgraph/{number}": "graphql-indexer"}
            subjects |= {f"json/{number}": "document", f"index-node/{number}": "share", f"ponder/{number}": "share"}
        if chain.hosted_indexer:
            subjects[f"hosted/{number}"] = "graphql-indexer"
        if chain.ppoi:
            subjects[f"ppoi/{number}"] = "network"
        if chain.members:
            subjects[f"broadcasters/{number}"] = "broadcasters"
        subjects |= {f"{service}/{number}": "responder" for service in chain.responders}
    return subjects | {
        "index-node": "node",
        "ponder": "node",
        "ppoi": "ppoi",
        "waku/peers": "peers",
        "waku/messages": "messages",
    }


def in_world(subject: str) -> str:
    """What the world calls the thing behind a subject; the indexers of one chain are one indexer in several guises."""
    match subject.split("/"):
        case ["rpc", chain_id, letter]:
            return f"rpc/{chain_id}/{ascii_lowercase.index(letter)}"
        case ["squid" | "subgraph" | "json" | "index-node" | "ponder", chain_id]:
            return f"indexer/{chain_id}"
        case ["hosted", chain_id]:
            return f"hosted-indexer/{chain_id}"
        case ["waku", "peers"]:
            return "messaging"
        case ["waku", "messages"]:
            return "broadcasters"
        case _:
            return subject
