"""A real server, questioned from its own OpenAPI description."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.integration.served import Server, a_ledger, a_server, publish

SCHEMATHESIS: Final = Path(sys.executable).parent / "schemathesis"
WITHIN_S: Final = 180
# Without a document, and above the limit, nothing is found; what is answered instead is described all the same.
FOR_REFUSALS: Final = (
    "--checks",
    "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
    "--warnings",
    "off",
    "--max-examples",
    "3",  # whatever is asked, the answer is the same
)


def finds_nothing(server: Server, folder: Path, *options: str) -> None:
    """Run schemathesis on all 42 operations but the one that it gets the description by; the same each time."""
    command = [str(SCHEMATHESIS), "run", f"{server.base}/openapi.json", "--generation-deterministic", "--no-color"]
    command += options
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Tested: 41" in ran.stdout
    assert "No issues found" in ran.stdout, ran.stdout


@pytest.mark.clause("V2", "V3")
def test_schemathesis_finds_nothing_wrong_with_the_server(tmp_path: Path) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        finds_nothing(server, tmp_path, "--checks", "all", "--max-examples", "30")


@pytest.mark.clause("V2")
def test_what_a_server_without_documents_answers_is_described(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        finds_nothing(server, tmp_path, *FOR_REFUSALS)


@pytest.mark.clause("V2")
def test_what_a_caller_above_the_limit_gets_is_described(tmp_path: Path) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path, rate_limit_per_minute=1) as server:
        finds_nothing(server, tmp_path, *FOR_REFUSALS)


@pytest.mark.clause("V2")
def test_only_the_web_server_adds_headers_to_those_described(tmp_path: Path) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        description = json.loads(server.ask("GET", "/openapi.json").body)
        for path, operations in description["paths"].items():
            for method, code in (("get", "200"), ("head", "200"), ("options", "204")):
                response = operations[method]["responses"][code]
                described = {name.lower() for name, header in response["headers"].items() if header["required"]}
                described |= {"content-type"} if "content" in response else set()
                answer = server.ask(method.upper(), path.format(service="indexer", chainId=1))
                assert {name for name, _ in answer.headers} == described | {"date", "server"}
