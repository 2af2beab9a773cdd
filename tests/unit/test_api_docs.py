"""The page for wallet developers misses nothing that the API can say."""

import json
import re
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import pytest

from lookout.config.tables import ServerTable
from lookout.core.model import Status
from lookout.core.services import SERVICES
from lookout.documents.api import paths
from lookout.documents.reports import build_schemas
from lookout.server.replies import CODES, HISTORY_CACHING, LIVE_CACHING
from lookout_reader.statuses import CHARACTERS, NO_DATA
from lookout_reader.words import Reason
from tools.clauses import read_clauses
from tools.examples import build_history_example, build_live_example, build_note_example
from tools.openapi import describe_api

DOCS: Final = Path(__file__).parent.parent.parent / "docs"
METHODS: Final = ("get", "head", "options")
PAGE: Final = (DOCS / "api.md").read_text(encoding="utf-8")


def tables() -> dict[str, dict[str, list[str]]]:
    """The rows of all tables with the same first heading, by what their first cell says; the rest of their cells."""
    found: dict[str, dict[str, list[str]]] = {}
    heading = ""
    for line, following in zip(PAGE.splitlines(), [*PAGE.splitlines()[1:], ""], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if following.startswith("|---"):
            heading = cells[0]
        elif cells and not line.startswith("|---"):
            for name in cells[0].split(", "):
                found.setdefault(heading, {})[name.strip("`")] = cells[1:]
    return found


TABLES: Final = tables()


def test_the_tables_have_every_status_reason_and_character_and_no_other() -> None:
    assert list(TABLES["status"]) == list(get_args(Status))
    assert list(TABLES["reason"]) == list(get_args(Reason))
    assert list(TABLES["character"]) == [*CHARACTERS.values(), NO_DATA]
    for status, character in CHARACTERS.items():
        assert TABLES["character"][character] == [status]


def test_the_table_of_answers_has_every_code_that_the_server_counts_and_that_is_described() -> None:
    operations = [described[method] for described in describe_api("protocol")["paths"].values() for method in METHODS]
    described = {code for operation in operations for code in operation["responses"]}
    assert set(TABLES["code"]) == {str(code) for code in CODES} == described


def test_every_field_of_both_documents_is_explained() -> None:
    fields = {
        field
        for schema in build_schemas().values()
        for part in schema["$defs"].values()
        for field in part["properties"]
    }
    assert set(TABLES["field"]) == fields
    assert all(f"`{service}`" in TABLES["field"]["service"][0] for service in SERVICES.names)


def test_the_examples_are_those_of_the_description() -> None:
    shown: list[Any] = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", PAGE, flags=re.DOTALL)]
    documents = [json.loads(document().body) for document in (build_live_example, build_history_example)]
    assert shown == [*documents, json.loads(msgspec.json.encode(build_note_example()))]


def test_the_seconds_of_caching_are_those_of_the_headers() -> None:
    for heading, (live, history) in TABLES["seconds"].items():
        directive = re.findall(r"`(.+?)`?\)", heading)[0]
        assert f"{directive}={live}" in LIVE_CACHING.split(", ")
        assert f"{directive}={history}" in HISTORY_CACHING.split(", ")
    assert len(TABLES["seconds"]) == 4


def test_the_limit_is_the_one_at_launch() -> None:
    assert f"Above {ServerTable().rate_limit_per_minute} requests a minute" in PAGE


@pytest.mark.clause("V3")
def test_the_paths_are_there_and_the_operators_own_ones_as_conveniences() -> None:
    assert [cells[0].strip("`") for cells in TABLES["document"].values()] == list(paths("protocol"))
    conveniences = PAGE.partition("## Conveniences")[2]
    assert "not public API" in conveniences
    assert set(re.findall(r"`(/.+?)`", conveniences)) == set(describe_api("protocol")["paths"]) - set(paths("protocol"))


def test_every_clause_that_the_page_names_is_one() -> None:
    assert set(re.findall(r"\b[MRSHAECV]\d+\b", PAGE)) <= set(read_clauses())
