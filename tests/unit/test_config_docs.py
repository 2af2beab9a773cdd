"""The example and the page about the configuration say what the settings are, no more and no less."""

import re
import tomllib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import pytest
from msgspec.structs import FieldInfo, replace

from lookout.base.setting_types import Duration, DurationOrZero, Former, Natural, OneOf, Positive
from lookout.config.file import read_config
from lookout.config.reader import Form, find_note, form_in, keys_of
from lookout.config.services import form_of
from lookout.config.settings import Settings
from lookout.config.tables import RpcEndpoint
from lookout.core.model import Check
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.settings import AlertRule, AlertsTable
from lookout.features.lists.comparer import list_transactions
from lookout.protocols.client.request import SourceTable
from lookout.protocols.lists import ListTable
from lookout.protocols.registry import configurable_services

ROOT: Final = Path(__file__).parent.parent.parent
EXAMPLE: Final = ROOT / "lookout.example.toml"
PAGE: Final = ROOT / "docs" / "configuration.md"
REQUIRED: Final = "**required**"
OF_LISTS: Final = ("limit", "endpoints", "requests_per_minute", "url")
REACHING: Final = ("headers", "ca_file", "proxy")
AS_KNOWN: Final = ("as known", "none")
DIVIDES_A_DAY: Final = "whole seconds that divide a day, 86400"
ALLOWED: Final = {Duration: "time", DurationOrZero: "time or 0", Positive: "1 or more", Natural: "0 or more"}


def _default_of(key: FieldInfo) -> Any:
    return key.default if key.default_factory is msgspec.NODEFAULT else key.default_factory()


def keys_in(form: Form, name: str) -> Iterator[tuple[tuple[str, str], FieldInfo]]:
    """The keys of the settings by their table, which is "" at the top of the file, and their name."""
    for key_name, key in keys_of(form).items():
        inner = form_in(key.type)
        if inner is not None and inner is not RpcEndpoint:  # which the example writes as a text
            yield from keys_in(inner, f"{name}.{key_name}" if name else key_name)
        elif (form is not Settings or key_name != "sources") and find_note(key.type, Former) is None:
            yield (name, key_name), key


def written_default(key: FieldInfo) -> Any:
    default = _default_of(key)
    return list(default) if isinstance(default, tuple) else default


def without_rules(kind: Any) -> Any:
    """A type with its limits alone."""
    limits = [meta for meta in typing.get_args(kind) if isinstance(meta, msgspec.Meta)]
    return Annotated[kind.__origin__, limits[0]] if limits else kind


def bounds_of(kind: Any) -> tuple[float, float] | None:
    """The least and the greatest number that a key may have."""
    metas = [meta for meta in typing.get_args(kind) if isinstance(meta, msgspec.Meta)]
    return next(((meta.ge, meta.le) for meta in metas if meta.ge is not None and meta.le is not None), None)


KEYS: Final = dict(keys_in(Settings, "")) | {
    place: key for service in configurable_services() for place, key in keys_in(form_of(service), service.name)
}
ALL_KEYS: Final = KEYS | dict(keys_in(RpcEndpoint, "chains.rpc"))


def documented() -> Iterator[tuple[str, str, str, str]]:
    """Table, key, default and what is allowed, of every row of the page's tables of keys."""
    tables: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            tables = [""] if line == "## Top of the file" else re.findall(r"`\[+([a-z.-]+)\]+`", line)
        row = re.fullmatch(r"\| `(\w+)` \| (.+?) \| (.+?) \| (?:.+ )?\|", line)
        if row is not None:
            yield from ((table, row[1], row[2], row[3]) for table in tables)


DOCUMENTED: Final = list(documented())


def test_every_key_is_documented_once_and_every_documented_key_exists() -> None:
    assert sorted((table, name) for table, name, _, _ in DOCUMENTED) == sorted(ALL_KEYS)


def test_every_line_that_looks_like_a_key_was_read() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    # Hosted indexers have the keys of indexers, and every source has those of how it is reached.
    own = {key for key in ALL_KEYS if not key[0].startswith("hosted-") and key[1] not in REACHING}
    assert len(lines) == len(own) + len(REACHING)


@pytest.mark.parametrize(("table", "name", "default", "allowed"), DOCUMENTED)
def test_a_documented_key_has_its_default_and_its_range(table: str, name: str, default: str, allowed: str) -> None:
    key = ALL_KEYS[table, name]
    if key.required:
        assert default == REQUIRED
    elif default in AS_KNOWN:
        assert not _default_of(key)
    else:
        written = tomllib.loads(f"value = {default.strip('`')}")["value"]
        assert (written, type(written)) == (written_default(key), type(written_default(key)))
    plain = without_rules(key.type)
    if plain in ALLOWED and name != "chain":
        assert allowed == ALLOWED[plain]
    elif (bounds := bounds_of(key.type)) is not None and allowed not in ("chain", DIVIDES_A_DAY):
        assert allowed.endswith("{} to {}".format(*bounds))
    for held in (key.type, *typing.get_args(key.type)):  # the value, or each of its items
        declared = [note for note in typing.get_args(held) if isinstance(note, OneOf)]
        if declared or typing.get_origin(held) is Literal:
            choices = declared[0].choices() if declared else typing.get_args(held)
            assert allowed == ", ".join(f'`"{choice}"`' for choice in choices)


@pytest.mark.clause("M10")
def test_the_example_has_21_rows_of_which_one_is_unmonitored() -> None:
    plan = read_config(EXAMPLE, {}).plan()
    assert len(plan.checks()) == 21
    assert sorted(plan.chains) == [1, 56, 137, 42161, 11155111]
    assert set(plan.checks()) - plan.monitored == {Check("hosted-indexer", 11155111)}


def uncommented() -> str:
    """The example with all that is commented out, ``# key = value`` and ``# [table]``, put into force."""
    return re.sub(r"^# (?=\w+ = |\[)", "", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_what_the_example_has_commented_out_are_the_defaults(tmp_path: Path) -> None:
    # A rule is of no use, and an error, where there is nobody to tell.
    text = uncommented().replace("targets = {}", 'targets = {ops = "json://127.0.0.1"}')
    (tmp_path / "lookout.toml").write_text(text, encoding="utf-8")
    read = read_config(tmp_path / "lookout.toml", {})
    # What a rule says of unknown where it is left out cannot be written.
    assert read.table_of(Alerts) == AlertsTable({"ops": "json://127.0.0.1"}, rules=(AlertRule(unknown=False),))
    without = {name: tuple(map(without_complete, tables)) for name, tables in read.sources.items()}
    assert replace(read, alerts=AlertsTable(), services=(), sources=without) == read_config(EXAMPLE, {})
    for listed in list_transactions(read.sources_by_check()).values():
        assert [getattr(listed.table, name) for name in OF_LISTS] == [
            written_default(KEYS["indexer.complete", name]) for name in OF_LISTS
        ]
    assert list(list_transactions(read.sources_by_check())) == [Check("indexer", 1), Check("hosted-indexer", 1)]
    assert [(own.name, own.service().title, [check.kind for check in own.checks]) for own in read.services] == [
        ("bundler", "Bundlers", ["jsonrpc"]),
        ("relayer", "Relayer", ["http"]),
        ("rpc-provider", "RPC providers", ["evm"]),
    ]


def without_complete(table: SourceTable) -> SourceTable:
    return replace(table, complete=None, links=None) if isinstance(table, ListTable) else table


def test_the_example_has_every_key_and_in_force_only_those_that_are_required() -> None:
    # Of the keys of the operator's own services, which depend on their kind, it has those of its three examples.
    of_all = {place: key for place, key in KEYS.items() if not place[0].startswith("services")}
    assert of_all.keys() <= written_in(uncommented()) <= KEYS.keys()
    in_force = written_in(EXAMPLE.read_text(encoding="utf-8"))
    assert in_force == {place for place, key in of_all.items() if key.required and not place[0].endswith(".complete")}


def written_in(text: str) -> set[tuple[str, str]]:
    return set(written_under("", tomllib.loads(text)))


def written_under(table: str, keys: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in keys.items():
        inner = f"{table}.{name}" if table else name
        match value:
            case dict() if (table, name) not in KEYS:
                yield from written_under(inner, value)
            case [dict(), *_]:
                for row in value:
                    yield from written_under(inner, row)
            case _:
                yield table, name


def test_every_public_address_in_the_example_says_that_it_was_not_tried() -> None:
    lines = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if "https://" in line]
    assert len(lines) == 5 * 3 + 4 + 2
    assert all("seen in public sources, not tried" in line for line in lines)
