"""Descriptions of deployments: the launch chains, or those that a test names."""

from collections.abc import Collection, Mapping
from typing import Final

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.core.services import SERVICES
from lookout.public.about import ChainDescription, Description, ServiceDescription
from lookout_reader.about import About

LAUNCH: Final = {chain_id: KNOWN_CHAINS[chain_id].name for chain_id in (1, 42161, 137, 56, 11155111)}


def a_description(
    names: Mapping[int, str] = LAUNCH, test_networks: Collection[int] = (11155111,), title: str = "protocol"
) -> Description:
    return Description(
        "protocol",
        tuple(ChainDescription(chain_id, name, chain_id in test_networks) for chain_id, name in names.items()),
        tuple(ServiceDescription(each.name, each.title, each.name in ("ppoi", "hosted-indexer")) for each in SERVICES),
        title,
    )


def an_about(names: Mapping[int, str] = LAUNCH, test_networks: Collection[int] = (11155111,)) -> About:
    return a_description(names, test_networks).read()
