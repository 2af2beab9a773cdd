"""The page about the readers: its Python examples run, and it leaves nothing out. Node runs its JavaScript ones."""

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import lookout_reader
from lookout_reader import Answer, Clocks, EffectiveStatus, LiveReport, Update, parse_report
from lookout_reader.clocks import Arrival
from tests.contract.pollers import Clock

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "readers.md").read_text(encoding="utf-8")
README = (ROOT / "readers" / "python" / "README.md").read_text(encoding="utf-8")
ROLL_UP, HISTORY = re.findall(r"```python\n(.+?)```", PAGE, flags=re.DOTALL)
NOW = 1_794_744_000_000


def example(code: str, **names: object) -> Any:
    module = ModuleType("example")
    vars(module).update(names)
    exec(compile(code, "docs/readers.md", "exec"), module.__dict__)  # noqa: S102 - our own page
    return module


def report_text(status: str) -> str:
    fresh = {"observedAt": "2026-11-15T11:59:30.000Z", "expiresAt": "2026-11-15T12:02:00.000Z"}
    checks = [
        {"service": service, "chainId": chain_id, "status": status, "reason": "synced", **fresh}
        for service, chain_id in [("messaging", None), ("ppoi", 1), ("ppoi", 137), ("broadcasters", 1)]
    ]
    return json.dumps({"schemaVersion": 1, "generatedAt": "2026-11-15T11:59:31.000Z", "checks": checks})


class ReadEnoughError(Exception):
    pass


@pytest.mark.clause("C4")
def test_the_readme_shows_what_is_broken_and_that_it_is_loading(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.+?)```", README, flags=re.DOTALL)
    clock = Clock()

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.elapsed_s > 31:
            raise ReadEnoughError

    def fetch(*_: object) -> Answer:
        return Answer(200, report_text("current" if clock.elapsed_s < 30 else "degraded"))

    options = {"fetch": fetch, "now": lambda: NOW, "monotonic": clock.monotonic, "sleep": sleep, "chance": lambda: 0.0}
    assert "history=None)" in code
    with pytest.raises(ReadEnoughError):
        example(code.replace("history=None)", "history=None, **options)"), options=options)
    degraded = ["ppoi is degraded warn None", "messaging is degraded warn None"]
    assert capsys.readouterr().out.splitlines() == ["loading", "nothing is known to be broken", *degraded]


@pytest.mark.clause("C11")
def test_the_roll_up_tells_each_service_and_the_whole() -> None:
    report = parse_report(report_text("current"))
    assert isinstance(report, LiveReport)
    arrived = report.arrived(Arrival(lambda: Clocks(NOW)))
    told = example(ROLL_UP).summary(Update(arrived, None, None, None, None))
    assert told == [
        "messaging current",
        "ppoi current",
        "broadcasters unknown",
        "indexer unknown",
        "hosted-indexer unknown",
        "overall unknown",
    ]


@pytest.mark.clause("C13")
def test_the_history_is_shown_with_its_coverage() -> None:
    row = {"service": "ppoi", "chainId": 1, "buckets": "-" * 12 + "c" * 12 + "u", "uptime": {"7d": 0.9231}}
    borders = {"from": "2026-11-15T10:00:00Z", "to": "2026-11-15T12:00:00Z"}
    body = json.dumps({"schemaVersion": 1, "bucketSeconds": 300, **borders, "rows": [row]}).encode()
    account = example(HISTORY).account
    assert account(body) == ["92.31%", "from 13 of 2017 buckets; 25 were recorded", f"{NOW} unavailable"]
    assert account(b"<html>") == ["unreadable"]


def test_what_is_said_about_coverage_is_so() -> None:
    assert "A window of 24 hours has 289 buckets" in PAGE
    assert lookout_reader.WINDOWS["24h"] // 300 + 1 == 289


def test_the_table_has_every_effective_status() -> None:
    table = PAGE.partition("| effective status |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(.+?)` \|", table, flags=re.MULTILINE)) == set(get_args(EffectiveStatus))


def test_every_name_of_python_is_exported() -> None:
    assert all(hasattr(lookout_reader, name) for name in lookout_reader.__all__)
    for name in re.findall(r"`([a-z]+_[a-z_]+)`", PAGE):
        assert name in lookout_reader.__all__ or name == "published_status", name


def test_both_readers_tell_the_same_in_an_update() -> None:
    types = (ROOT / "readers" / "js" / "src" / "page.d.ts").read_text(encoding="utf-8")
    fields = re.findall(r"readonly (\w+):", types.partition("export interface Update {")[2].partition("}")[0])
    names = {re.sub(r"[A-Z]", lambda upper: f"_{upper[0].lower()}", name) for name in fields}
    assert names == (Update.__dataclass_fields__.keys() - {"arrival"}) | {"now", "received_ago_ms", "answered_ago_ms"}
