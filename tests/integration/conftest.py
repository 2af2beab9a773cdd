"""What tests share because it takes long to start: a server, and an edge, whose configuration is compiled first."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.edged import Edge, Origin, an_edge, an_origin, forget_everything
from tests.integration.planted import ledger
from tests.integration.served import Server, a_free_port, a_server, publish


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server with rows of every status."""
    folder = tmp_path_factory.mktemp("served")
    publish(folder, ledger())
    with a_server(folder) as server:
        yield server


@pytest.fixture(scope="session")
def shared_edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Edge, Path, int]]:
    """Without a limit; its folder, and the port of its origin."""
    folder, port = tmp_path_factory.mktemp("edge"), a_free_port()
    with an_edge(folder, port) as edge:
        yield edge, folder, port


@pytest.fixture
def origin(shared_edge: tuple[Edge, Path, int]) -> Iterator[Origin]:
    with an_origin(shared_edge[2]) as origin:
        yield origin


@pytest.fixture
def edge(shared_edge: tuple[Edge, Path, int], origin: Origin) -> Edge:
    """It stands before the origin, and remembers nothing."""
    edge, folder, port = shared_edge
    assert origin.port == port
    forget_everything(edge, folder)
    return edge
