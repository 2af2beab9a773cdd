"""The rules for Prometheus and the dashboard for Grafana, held against promtool and a running service's own metrics."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import aiohttp
import pytest
import yaml  # type: ignore[import-untyped]  # it has no types of its own
from prometheus_client.parser import text_string_to_metric_families

from lookout.core.agreement import Standing
from lookout.core.model import Status
from tests.commands import a_command
from tests.integration.fast import a_world
from tests.integration.planted import a_listener
from tests.integration.served import HISTORY, LIVE
from tests.integration.whole_service import a_service, answer
from tests.wait import until_async

ROOT: Final = Path(__file__).parent.parent.parent
PROMETHEUS: Final = ROOT / "deploy" / "prometheus"
RULES: Final = PROMETHEUS / "lookout.rules.yml"
RULES_TESTS: Final = PROMETHEUS / "lookout.rules.test.yml"
SCRAPING: Final = PROMETHEUS / "prometheus.yml"
DASHBOARD: Final = ROOT / "deploy" / "grafana" / "lookout.json"
RUNBOOKS: Final = ROOT / "docs" / "operations.md"
TIME_S: Final = 240
# None is told of a row that has another status, or of an endpoint that has another standing.
STATUSES: Final = {*get_args(Status), *get_args(Standing)}
OF_SCRAPES: Final = {"job", "instance", "deployment"}  # labels that Prometheus adds
SELECTED: Final = re.compile(r"\b((?:lookout|process)_\w+)(?:\{([^}]*)\})?")
LABEL: Final = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
GROUPED: Final = re.compile(r"\b(?:by|on|without) \(([^)]*)\)")
# What an aggregation keeps apart, or "" for nothing; `without` keeps all that it does not name.
AGGREGATED: Final = re.compile(r"\b(?:sum|min|max|avg|count|group)\b(?! without)(?: by \(([^)]*)\))?")
COUNTED: Final = re.compile(r"\b(?:rate|increase)\(((?:lookout|process)_\w+)")

needs_promtool: Final = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool; on Debian: apt-get install prometheus"
)


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def asked() -> dict[str, str]:
    """Every expression of the dashboard, with what Grafana puts in for its variables; by its panel and letter."""
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", "1m")
        .replace("$deployment", ".*")
        for panel in panels()
        for target in panel.get("targets", [])
    }


def promtool(*arguments: str | Path) -> None:
    told = subprocess.run(
        ["promtool", *arguments],  # noqa: S607  wherever it is installed
        capture_output=True,
        text=True,
        timeout=TIME_S,
        check=False,
        cwd=PROMETHEUS,
    )
    assert told.returncode == 0, told.stdout + told.stderr


@needs_promtool
def test_prometheus_understands_the_rules_and_the_configuration(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    promtool("check", "rules", RULES)
    promtool("check", "config", shutil.copy(SCRAPING, tmp_path))


@pytest.mark.first
@needs_promtool
def test_every_alert_fires_when_it_should_and_not_otherwise() -> None:
    promtool("test", "rules", RULES_TESTS)


def test_every_alert_is_tried_both_ways_and_every_recorded_value_is_held_against_a_number() -> None:
    tried: dict[str, set[bool]] = {}
    recorded = set()
    for test in yaml.safe_load(RULES_TESTS.read_text())["tests"]:
        for each in test.get("alert_rule_test", []):
            tried.setdefault(each["alertname"], set()).add(bool(each["exp_alerts"]))
        recorded |= {each["expr"].partition("{")[0] for each in test.get("promql_expr_test", [])}
    assert tried == {name: {True, False} for name in alerts()}
    assert recorded == {rule["record"] for rule in rules() if "record" in rule}


def test_no_rule_mixes_two_deployments() -> None:
    kept_apart = [AGGREGATED.findall(str(rule["expr"])) for rule in rules()]
    assert sum(map(len, kept_apart)) >= 3
    for labels in itertools.chain(*kept_apart):
        assert {"job", "deployment"} <= {label.strip() for label in labels.split(",")}
    assert not [rule for rule in rules() if re.search(r"\bon \((?!job, (instance|deployment)\b)", str(rule["expr"]))]


def test_every_alert_says_how_bad_it_is_and_where_to_read_on() -> None:
    headings = {
        line.removeprefix("### ") for line in RUNBOOKS.read_text().splitlines() if line.startswith("### Lookout")
    }
    assert headings == set(alerts())
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("critical", "warning")
        notes = rule["annotations"]
        assert notes["summary"]
        assert notes["description"]
        assert notes["runbook_url"] == f"docs/operations.md#{name.lower()}"


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert (dashboard["uid"], dashboard["schemaVersion"]) == ("lookout", 38)
    assert "id" not in dashboard  # or another dashboard of that number would be overwritten
    source, deployment = dashboard["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert (deployment["name"], deployment["allValue"]) == ("deployment", ".*")  # also where there is no such label
    for panel in panels():
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["targets"]
            assert panel["description"]
            letters = [target["refId"] for target in panel["targets"]]
            assert len(set(letters)) == len(letters)


def test_every_panel_is_about_the_chosen_deployment() -> None:
    for name, expression in asked().items():
        chosen = [
            'deployment=~".*"' in selectors
            for _, selectors in re.findall(r"\b(lookout_\w+|process_\w+|up)\b(\{[^}]*\})?", expression)
        ]
        assert chosen, name
        assert all(chosen), name


@needs_promtool
def test_prometheus_understands_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(asked().values())]
    assert len(recorded) > len(panels()) / 2
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    promtool("check", "rules", file)


@pytest.fixture
def witness() -> Iterator[str]:
    """One that watches nothing."""
    body = b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:00.000Z","checks":[]}'
    with a_listener(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) as url:
        yield url


async def test_every_metric_and_label_that_is_asked_for_is_there_with_its_type(tmp_path: Path, witness: str) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)
        with (tmp_path / "lookout.toml").open("a") as config:  # targets of alerts have metrics, too; nobody is there
            config.write("min_known_buckets = 1\n")  # of [history], so that there is an uptime
            config.write(f'[alerts.targets]\nops = "json://{service.monitor_admin}"\n[[alerts.rules]]\n')
            config.write(f'[ping]\nurl = "http://{service.monitor_admin}/healthz"\nevery_s = 0.2\n')
            config.write(f'[[witnesses]]\nname = "Lima"\nurl = "{witness}"\n')
        with a_command(tmp_path, "run", "-c", "lookout.toml"):

            async def both_answer() -> bool:
                return all([await answer(world.http, service.base + path) for path in (LIVE, HISTORY)])

            async def has_pinged() -> bool:
                metrics = await read_metrics(world.http, service.monitor_admin)
                return "lookout_pings_total{" in metrics and "lookout_row_uptime_ratio{" in metrics

            await until_async(both_answer, f"both endpoints answer: {service.said}", TIME_S)
            await world.until_healthy()
            await until_async(has_pinged, "a ping", TIME_S)
            admins = (service.monitor_admin, service.server_admin)
            texts = [await read_metrics(world.http, admin) for admin in admins]

    families = [family for text in texts for family in text_string_to_metric_families(text)]
    types = {sample.name: family.type for family in families for sample in family.samples}
    labels: dict[str, dict[str, set[str]]] = {}
    for sample in (sample for family in families for sample in family.samples):
        for label, value in sample.labels.items():
            labels.setdefault(sample.name, {}).setdefault(label, set()).add(value)
    types["lookout_source_doubt"] = (
        "gauge"  # which is there only while something is wrong: tests/unit/test_endpoints.py
    )
    labels["lookout_source_doubt"] = {"source": {"squid 1"}, "cause": {"certificate_ends", "indexing_errors"}}
    expressions = {str(rule.get("alert", rule.get("record"))): str(rule["expr"]) for rule in rules()} | asked()
    for name, expression in expressions.items():
        for problem in problems(expression, types, labels):
            pytest.fail(f"{name}: {problem} in {expression}")


async def read_metrics(http: aiohttp.ClientSession, admin: str) -> str:
    async with http.get(f"http://{admin}/metrics") as got:
        return await got.text()


def problems(expression: str, types: dict[str, str], labels: dict[str, dict[str, set[str]]]) -> Iterator[str]:
    """What an expression asks for that no process tells."""
    grouped = {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")} - {""}
    counted = COUNTED.findall(expression)
    for metric, selectors in SELECTED.findall(expression):
        if metric not in types:
            yield f"no {metric}"
            continue
        known = labels.get(metric, {})
        for label, value in LABEL.findall(selectors):
            if label not in OF_SCRAPES | known.keys():
                yield f"no label {label} of {metric}"
            elif label in known and not set(value.split("|")) <= known[label] | STATUSES:
                yield f"no {metric} with {label} {value}"
        if not grouped <= OF_SCRAPES | known.keys():
            yield f"{metric} has not all of {grouped}"
        if (metric in counted) != (types[metric] in ("counter", "histogram")):
            yield f"{metric} is a {types[metric]}"
