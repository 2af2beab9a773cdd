"""The way out: what services get from Apprise, which addresses it is let have, and the page about all this."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apprise.plugins import pagerduty
from click.testing import CliRunner

from lookout.cli import main
from lookout.config.file import ConfigError, read_sending_config
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.messages import AlertEvent, Deployment, Item, Message, write_sample
from lookout.features.alerts.sender import NotAcceptedError, count_recipients, open_sender
from tests.alerting import THE_FIVE
from tests.cases import cases
from tests.integration.served import a_free_port
from tests.web import Answering, serving

ROOT = Path(__file__).parent.parent.parent
OUTAGE = Message("Lookout: messaging is unavailable", "Unavailable:\n- messaging")
RECOVERY = Message("Lookout: messaging recovered", "Recovered:\n- messaging", is_over=True)


@contextmanager
def a_service() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What accepts anything that is posted meanwhile: its address, and what was posted."""
    posted: list[dict[str, Any]] = []

    class Handler(Answering):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send(202, b'{"requestId": "1"}')

    with serving(Handler) as base:
        yield base, posted


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What PagerDuty, which is here instead of there, is sent."""
    with a_service() as (url, posted):
        monkeypatch.setitem(pagerduty.PAGERDUTY_API_LOOKUP, "us", url)
        yield posted


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("json://{host}/k3y", "HTTP 403", id="an answer"),
        pytest.param("jsons://{host}/k3y", "not reached: no secure connection", id="no TLS"),
        pytest.param("json://127.0.0.1:{free}/k3y", "not reached: nothing listens at its address", id="refused"),
        pytest.param(
            "mailto://u:k3y@127.0.0.1:{free}?from=a@b.example&to=a@b.example",
            "not reached: nothing listens at its address",
            id="mail",
        ),
        pytest.param("json://nowhere.invalid/k3y", "not reached: its name could not be resolved", id="no name"),
    ],
)
def test_what_is_not_accepted_has_a_reason_without_its_address(address: str, why: str) -> None:
    class Handler(Answering):
        def do_POST(self) -> None:
            self.send(403, b"k3y error=200 Connection refused")

    with serving(Handler) as base, pytest.raises(NotAcceptedError) as caught:
        open_sender(address.format(host=base.removeprefix("http://"), free=a_free_port()))(OUTAGE)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("message", "severity"),
    [(OUTAGE, "critical"), (RECOVERY, "info"), (write_sample(THE_FIVE), "critical")],
    ids=lambda each: each[0],
)
def test_a_pager_is_told_how_bad_it_is(message: Message, severity: str, posted: list[dict[str, Any]]) -> None:
    open_sender("pagerduty://key@lookout")(message)
    (event,) = posted
    assert (event["event_action"], event["payload"]["severity"]) == ("trigger", severity)
    assert message.title in event["payload"]["summary"]


def test_a_pager_whose_address_says_so_is_told_that_it_is_over(posted: list[dict[str, Any]]) -> None:
    for message in (OUTAGE, RECOVERY):
        open_sender("pagerduty://key@lookout?action=map&dedup=lookout")(message)
    assert [(event["event_action"], event["dedup_key"]) for event in posted] == [
        ("trigger", "lookout"),
        ("resolve", "lookout"),
    ]


@pytest.mark.parametrize("address", ["json://{}", "json://{}/hook?:lookout=mine&:message=text"])
def test_a_webhook_gets_the_message_as_data_beside_the_words(address: str) -> None:
    sample = write_sample(Deployment({}, (), "Example", link="https://status.example.org/"))
    with a_service() as (url, posted):
        open_sender(address.format(url.removeprefix("http://")))(sample)
        open_sender(address.format(url.removeprefix("http://")))(OUTAGE)
    assert posted[0]["lookout"] == msgspec.to_builtins(sample.event) | {"items": []}
    assert posted[0]["title"] == sample.title
    assert posted[1].get("lookout", "mine") == "mine"  # stored by a version that had no data


@pytest.mark.parametrize(("address", "count"), cases("alert_targets", "an address reaches so many"))
def test_an_address_reaches_so_many(address: str, count: int) -> None:
    assert count_recipients(address) == count


WITH_ALERTS = "[messaging]\nurl = 'http://h'\n[alerts.targets]\nops = 'carrier-pigeon://h'\n[[alerts.rules]]\n"


def test_alerts_without_apprise_say_the_command_that_adds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    path = tmp_path / "lookout.toml"
    path.write_text(WITH_ALERTS)
    with pytest.raises(ConfigError) as caught:
        read_sending_config(path, {})
    (extra,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["alerts"]
    what = f"is not installed; {sys.executable} -m pip install '{extra}' adds it"
    assert caught.value.messages == [f"{path}: alerts.targets: Apprise, which sends to them, {what} (line 3)"]


REFUSAL = "lookout: lookout.toml: alerts.targets.ops: Apprise does not understand this address (line 4)\n"


@pytest.mark.parametrize("command", [["check-config"], ["alerts", "test"]], ids=" ".join)
def test_commands_that_send_or_check_ask_apprise_about_an_address(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text(WITH_ALERTS)
    with chdir(tmp_path):
        outcome = CliRunner().invoke(main, [*command, "-c", "lookout.toml"])
    assert (outcome.exit_code, outcome.stderr) == (2, REFUSAL)


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [("edge-config", 0, "False\n"), ("probe", 1, "False\n"), ("monitor", 2, f"{REFUSAL}True\n")],
)
def test_only_such_commands_load_apprise(command: str, exit_code: int, output: str, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text(WITH_ALERTS.replace("//h'", "//127.0.0.1:1'", 1))
    script = (
        "import sys\nfrom lookout.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('apprise' in sys.modules, file=sys.stderr)"
    )
    program = [sys.executable, "-c", script, command, "-c", "lookout.toml"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, timeout=100)
    assert (done.returncode, done.stderr) == (exit_code, output)


PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
VARIABLES = {
    "HOOK_TOKEN": "x",
    "MAIL_PASSWORD": "x",
    "SLACK_WEBHOOK": "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    "TELEGRAM_BOT_TOKEN": "123456789:AAplanted-token_0123456789012345678",
    "TELEGRAM_CHAT_ID": "-1001234567890",
    "SLACK_TOKENS": "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    "PAGERDUTY_KEY": "x",
    "HEALTHCHECKS_UUID": "x",
}


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_an_example_of_the_page_is_a_good_configuration(example: str, tmp_path: Path) -> None:
    sources = (ROOT / "lookout.example.toml").read_text(encoding="utf-8")
    if "alerts.rules" in example and "alerts.targets" not in example:
        example = f'[alerts.targets]\nops = "json://127.0.0.1"\n{example}'
    path = tmp_path / "lookout.toml"
    path.write_text(f"{sources.partition('[alerts]')[0]}\n{example}", encoding="utf-8")
    read = read_sending_config(path, VARIABLES)
    assert read.table_of(Alerts).rules or read.ping.url


def test_the_page_has_every_key_that_a_webhook_gets_and_a_right_example() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    event = msgspec.json.decode(example, type=AlertEvent)
    assert json.loads(msgspec.json.encode(event)) == json.loads(example)
    documented = PAGE.partition("### What a webhook gets")[2].partition("\n### ")[0].partition("| key of an item |")
    for table, described in ((documented[0], AlertEvent), (documented[2], Item)):
        keys = [
            key for first in re.findall(r"^\| (`.+?) \| ", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", first)
        ]
        assert keys == [each.encode_name for each in msgspec.structs.fields(described)]
