"""A real server, questioned from its own OpenAPI description."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.integration.served import Server, a_ledger, a_server, publish

SCHEMATHESIS: Final = Path(sys.executable).parent / "schemathesis"
WITHIN_S: Final = 180


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    publish(folder, a_ledger())
    with a_server(folder) as running:
        yield running


@pytest.mark.long
@pytest.mark.clause("V2", "V3")
def test_schemathesis_finds_nothing_wrong_with_the_server(server: Server, tmp_path: Path) -> None:
    try_every_operation(server, server.base, tmp_path)


def try_every_operation(server: Server, base: str, folder: Path) -> None:
    """All operations but the one that it gets the description by; the same each time."""
    paths = json.loads(server.ask("GET", "/openapi.json").body)["paths"].values()
    operations = sum(len({"get", "head", "options"} & path.keys()) for path in paths)
    command = [str(SCHEMATHESIS), "run", f"{base}/openapi.json", "--generation-deterministic", "--no-color"]
    command += ["--checks", "all", "--max-examples", "10"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Tested: {operations - 1}\n" in ran.stdout, ran.stdout
    assert "No issues found" in ran.stdout, ran.stdout


@pytest.mark.clause("V2")
def test_an_answer_has_the_headers_described_and_its_date(server: Server) -> None:
    description = json.loads(server.ask("GET", "/openapi.json").body)
    for path, operations in description["paths"].items():
        for method, code in (("get", "200"), ("head", "200"), ("options", "204")):
            response = operations[method]["responses"][code]
            described = {name.lower() for name in response["headers"]} - {"content-encoding"}
            described |= {"content-type"} if "content" in response else set()
            answer = server.ask(method.upper(), path.format(service="indexer", chainId=1))
            assert {name for name, _ in answer.headers} == described | {"date"}
