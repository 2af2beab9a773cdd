"""A real server, questioned from its own OpenAPI description."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.served import Server

SCHEMATHESIS: Final = Path(sys.executable).parent / "schemathesis"
WITHIN_S: Final = 180


@pytest.mark.long
@pytest.mark.clause("V2", "V3")
def test_schemathesis_finds_nothing_wrong_with_the_server(served: Server, tmp_path: Path) -> None:
    try_every_operation(served, served.base, tmp_path)


def try_every_operation(served: Server, base: str, folder: Path) -> None:
    """All operations but the one that it gets the description by; the same each time."""
    paths = json.loads(served.ask("GET", "/openapi.json").body)["paths"].values()
    operations = sum(len({"get", "head", "options"} & path.keys()) for path in paths)
    command = [str(SCHEMATHESIS), "run", f"{base}/openapi.json", "--generation-deterministic", "--no-color"]
    command += ["--checks", "all", "--max-examples", "10"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"Tested: {operations - 1}\n" in ran.stdout, ran.stdout
    assert "No issues found" in ran.stdout, ran.stdout


@pytest.mark.clause("V2")
def test_an_answer_has_the_headers_described_and_its_date(served: Server) -> None:
    description = json.loads(served.ask("GET", "/openapi.json").body)
    for path, operations in description["paths"].items():
        for method, code in (("get", "200"), ("head", "200"), ("options", "204")):
            response = operations[method]["responses"][code]
            described = {name.lower() for name in response["headers"]} - {"content-encoding"}
            described |= {"content-type"} if "content" in response else set()
            answer = served.ask(method.upper(), path.format(service="indexer", chainId=1))
            assert {name for name, _ in answer.headers} == described | {"date"}
