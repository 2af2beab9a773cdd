"""What a world consists of, and how its parts are named.

A subject is something that can go wrong on its own: ``chain/56``, ``rpc/56/2`` (an endpoint), ``indexer/56``,
``hosted-indexer/56``, ``ppoi`` (the node), ``ppoi/56`` (what it has of one network), ``broadcasters`` (the node that
hears them), ``broadcasters/56`` (those of one chain), ``messaging``, and the responders of a chain by their names.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple


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


def subjects(layout: Layout) -> Iterator[str]:
    """Everything in the layout that can go wrong."""
    for chain in layout:
        yield f"chain/{chain.chain_id}"
        for number in range(chain.endpoints):
            yield f"rpc/{chain.chain_id}/{number}"
        if chain.indexer:
            yield f"indexer/{chain.chain_id}"
        if chain.hosted_indexer:
            yield f"hosted-indexer/{chain.chain_id}"
        if chain.ppoi:
            yield f"ppoi/{chain.chain_id}"
        if chain.members:
            yield f"broadcasters/{chain.chain_id}"
        for service in chain.responders:
            yield f"{service}/{chain.chain_id}"
    yield from ("ppoi", "broadcasters", "messaging")
