"""A real server, held against its own OpenAPI description."""

import json
from pathlib import Path

import pytest

from tests.integration.planted import ledger
from tests.integration.served import a_server, publish

CHAIN = '[[chains]]\nid = 1\nrpc = ["http://a.example"]\n'  # which has a feed of its own


@pytest.mark.clause("V2")
def test_an_answer_has_the_headers_described_and_its_date(tmp_path: Path) -> None:
    publish(tmp_path, ledger())
    with a_server(tmp_path, more=CHAIN) as served:
        description = json.loads(served.ask("GET", "/openapi.json").body)
        for path, operations in description["paths"].items():
            for method, code in (("get", "200"), ("head", "200"), ("options", "204")):
                response = operations[method]["responses"][code]
                described = {name.lower() for name in response["headers"]} - {"content-encoding"}
                described |= {"content-type"} if "content" in response else set()
                answer = served.ask(method.upper(), path.format(service="indexer", chainId=1))
                assert {name for name, _ in answer.headers} == described | {"date"}, path
