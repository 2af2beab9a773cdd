"""The example and the page's tables are made from the settings and their descriptions."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal

import pytest
from msgspec.structs import replace

from lookout.base.setting_types import Duration, Positive, Table, must
from lookout.config.file import read_config
from lookout.core.model import Check
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.settings import AlertRule, AlertsTable
from lookout.features.lists.readers import choose_lists
from lookout.protocols.client.request import SourceTable
from lookout.protocols.lists import ListTable
from tools.configuration import (
    EXAMPLE,
    PAGE,
    REACHING,
    ROOT,
    build_files,
    describe,
    describe_allowed,
    fill_in_page,
    find_tables,
    list_keys,
)

OWN_PAGE: Final = (
    "## `[server]`\n\nBefore.\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n| old |\n\nAfter.\n"
)


def test_the_generated_files_are_up_to_date() -> None:
    files = build_files()
    assert files.keys() == {ROOT / path for path in (EXAMPLE, PAGE)}
    for path, content in files.items():
        assert path.read_text(encoding="utf-8") == content, "run: make schemas"


def test_every_table_has_a_section_of_the_page_that_lists_its_keys() -> None:
    sections = re.split(r"^(?=## )", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    listed = {
        table: re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        for section in sections
        for table in re.findall(r"`\[+([a-z.-]+)\]+`", section.partition("\n")[0])
        if not section.startswith("## How sources are reached")
    }
    keys = {
        name: [key.name for key in list_keys(form) if key.name not in REACHING] for name, form in find_tables().items()
    }
    assert listed == {name: names for name, names in keys.items() if name}


def test_a_table_of_the_page_is_replaced_and_the_prose_around_it_stays() -> None:
    page = fill_in_page(OWN_PAGE)
    assert "| old |" not in page
    assert "| `ban_s` | `60` | time | How long a caller over the limit is refused (E2). |\n\nAfter.\n" in page
    assert fill_in_page(page) == page


class Described(Table, frozen=True):
    first: int = 0
    """A sentence
    of two lines. And another.
    Example: 12
    Allowed: anything"""
    second: str = ""


def test_a_description_stands_below_its_key() -> None:
    described = describe(Described)
    assert described["first"].sentences == "A sentence of two lines. And another."
    assert described["first"].more == {"Example": "12", "Allowed": "anything"}
    assert "second" not in described  # which is an error if a file is written


@pytest.mark.parametrize(
    ("key_type", "words"),
    [
        (Duration, "time"),
        (Annotated[Duration, must(bool, "")], "time"),
        (tuple[Positive, ...], "1 or more"),
        (Literal["a", "b"], '`"a"`, `"b"`'),
        (Positive | None, "1 or more"),
        (bool, "`true`, `false`"),
        (str, "text"),
    ],
)
def test_what_is_allowed_follows_from_the_type(key_type: object, words: str) -> None:
    assert describe_allowed(key_type) == words


@pytest.mark.clause("M10")
def test_the_example_has_21_rows_of_which_one_is_unmonitored() -> None:
    plan = read_config(ROOT / EXAMPLE, {}).plan()
    assert len(plan.checks()) == 21
    assert sorted(plan.chains) == [1, 56, 137, 42161, 11155111]
    assert set(plan.checks()) - plan.monitored == {Check("hosted-indexer", 11155111)}


def test_what_the_example_has_commented_out_are_the_defaults_and_right(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=\w+ = |\[)", "", (ROOT / EXAMPLE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    # A rule without a target is an error.
    text = text.replace("targets = {}", 'targets = {ops = "json://127.0.0.1"}')
    (tmp_path / "lookout.toml").write_text(text, encoding="utf-8")
    read = read_config(tmp_path / "lookout.toml", {})
    # What a rule without `unknown` does cannot be written.
    assert read.table_of(Alerts) == AlertsTable({"ops": "json://127.0.0.1"}, rules=(AlertRule(unknown=False),))
    without = {name: tuple(map(without_lists, tables)) for name, tables in read.sources.items()}
    in_force = read_config(ROOT / EXAMPLE, {})
    assert replace(read, alerts=AlertsTable(), services=(), sources=without, witnesses=()) == in_force
    assert list(choose_lists(read.sources_by_check(), ListTable.transaction_list)) == [
        Check("indexer", 1),
        Check("hosted-indexer", 1),
    ]
    assert [(own.name, own.service().title, [check.kind for check in own.checks]) for own in read.services] == [
        ("bundler", "Bundlers", ["jsonrpc"]),
        ("relayer", "Relayer", ["http"]),
        ("rpc-provider", "RPC providers", ["evm"]),
    ]


def without_lists(table: SourceTable) -> SourceTable:
    return replace(table, complete=None, links=None) if isinstance(table, ListTable) else table


def test_every_public_address_in_the_example_says_that_it_was_not_tried() -> None:
    lines = [
        line for line in (ROOT / EXAMPLE).read_text(encoding="utf-8").splitlines() if re.search(r'"https://', line)
    ]
    assert len(lines) == 5 * 3 + 4 + 1
    assert all("seen in public sources, not tried" in line for line in lines)
