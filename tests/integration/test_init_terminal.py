"""``lookout init`` as a newcomer meets it: questions on a terminal, with real upstreams that are asked meanwhile."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest

from lookout.config.file import read_config
from tests.commands import lookout
from tests.integration.sim_client import a_simulation
from tests.integration.terminal import CTRL_C, CTRL_D, Terminal, at_a_terminal

GOLDEN: Final = Path(__file__).parent.parent / "data" / "init" / "interview.toml"
KEY: Final = "0123456789abcdef0123456789abcdef"
NOBODY: Final = "http://127.0.0.1:1"  # nothing listens there


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the simulated upstreams."""
    with a_simulation(tmp_path_factory.mktemp("sim")) as base:
        yield base


def leave_the_page_out(terminal: Terminal) -> None:
    for question in ("its title", "who runs this", "people to write to"):
        terminal.answer(question, "")


@pytest.mark.first
def test_two_chains_with_every_service_take_two_dozen_answers(tmp_path: Path, base: str) -> None:
    answers = [
        ("A chain", "ethereum"),
        ("A chain", "137"),
        ("A chain", ""),
        *((f"RPC endpoint {n}", f"{base}/rpc/1/{letter}") for n, letter in enumerate("abc", 1)),
        ("RPC endpoint 4", ""),
        *((f"RPC endpoint {n}", f"{base}/rpc/137/{letter}") for n, letter in enumerate("abc", 1)),
        ("RPC endpoint 4", ""),
        ("Your own indexer of Ethereum", f"{base}/squid/1/graphql"),
        ("Your own indexer of Polygon", f"{base}/subgraph/137"),
        ("The indexer of Ethereum that others run", ""),
        ("The indexer of Polygon that others run", f"{base}/ponder"),
        ("A service of your own", f"rpc provider@polygon=rpc:{base}/provider/137"),
        ("A service of your own", ""),
        ("The ppoi node", f"{base}/ppoi"),
        ("Messaging", f"{base}/waku"),
        ("hears broadcasters", f"polygon={base}/waku"),
        ("Store: ", ""),
        ("Alerts", ""),
        ("its title", "My wallet"),
        ("who runs this", ""),
        ("people to write to", ""),
    ]
    assert len(answers) == 25
    with at_a_terminal(tmp_path, "init") as terminal:
        for question, answer in answers:
            terminal.answer(question, answer)
        assert terminal.end() == 0
    shown = terminal.shown
    assert shown.count("  agrees: block ") == 4
    for kind in ("squid", "subgraph", "ponder"):
        assert f"indexer: {kind}, position " in shown
    assert "  Ethereum: current: synced: position " in shown
    assert "  Polygon: current: responding: " in shown
    assert "warning" not in shown
    assert shown.endswith(
        "\nlookout.toml is written. Next:\n"
        "  lookout check-config && lookout probe\n"
        "  lookout run\n"
        "\nThen the status page is at http://127.0.0.1:8080/\n"
    )
    path = tmp_path / "lookout.toml"
    assert [each.name for each in tmp_path.iterdir()] == ["lookout.toml"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = re.sub("confirmations = [0-5]$", "confirmations = SEEN", path.read_text(), flags=re.MULTILINE)
    assert text == GOLDEN.read_text().replace("BASE", base)
    checked = lookout(tmp_path, "check-config")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "ok\n", "")
    assert lookout(tmp_path, "probe").returncode == 0


def test_a_wrong_answer_is_explained_and_asked_for_again(tmp_path: Path, base: str) -> None:
    with at_a_terminal(tmp_path, "init") as terminal:
        terminal.answer("A chain", "polygn")
        terminal.wait_for("no chain is known by the name 'polygn'; did you mean Polygon? Otherwise give its id")
        terminal.answer("A chain", "31337,Hard hat,soon")
        terminal.wait_for('  "soon" is not allowed; it has to be a number from')
        terminal.answer("A chain", "polygon")
        terminal.answer("A chain", "")
        terminal.answer("RPC endpoint 1", "https://node.example/${NO_SUCH_KEY}")
        terminal.wait_for("  the environment variable NO_SUCH_KEY is not set")
        terminal.answer("RPC endpoint 1", f"{base}/rpc/137/a")
        terminal.answer("RPC endpoint 2", f"{base}/rpc/137/a/")
        terminal.wait_for("  is the same endpoint as RPC endpoint 1")
        terminal.answer("RPC endpoint 2", f"{base}/rpc/1/a")
        terminal.wait_for("a node of another chain (1 instead of 137)")
        terminal.wait_for("wrong_chain: check its address in the configuration")
        terminal.answer("Keep it anyway? [y/N]", "")
        terminal.answer("RPC endpoint 2", "")
        terminal.answer("Your own indexer", f"graphql:{NOBODY}")
        terminal.wait_for('  "graphql" is not allowed; it has to be one of squid,')
        terminal.answer("Your own indexer", f"{base}/json/137")
        terminal.wait_for("no known kind fits what chain 137's answers (squid: no usable answer: HTTP 405;")
        terminal.answer("Your own indexer", f"json:{base}/json/137")
        terminal.wait_for('  kind "json" needs a JSON Pointer')
        terminal.answer("Your own indexer", f"json:{base}/json/137#/status/lastBlock")
        terminal.answer("that others run", f"squid:{NOBODY}/graphql")
        terminal.wait_for("Polygon: unknown: unreachable, refused: not reached: nothing listens at its address")
        terminal.wait_for("refused: start the service, or ask those who run it; or check its host and port")
        terminal.answer("Keep it anyway? [y/N]", "y")
        terminal.answer("A service of your own", f"relayer={NOBODY}")
        terminal.wait_for("unknown: unreachable, refused")
        terminal.answer("Keep it anyway? [y/N]", "y")
        terminal.answer("A service of your own", "")
        terminal.answer("The ppoi node", "back")
        terminal.answer("A service of your own", "back")
        terminal.answer("A service of your own: NAME", f"relayer=http:{base}/json/137")
        terminal.wait_for("current: responding")
        terminal.answer("A service of your own", "")
        terminal.answer("The ppoi node", "")
        terminal.answer("Messaging", "")
        terminal.answer("hears broadcasters", "")
        terminal.answer("Store: ", "mysql:db")
        terminal.wait_for("  has to begin with sqlite: and a path, or be a postgresql:// address")
        terminal.answer("Store: ", "")
        terminal.answer("Alerts", "no address")
        terminal.wait_for("  Apprise does not understand this address")
        terminal.answer("Alerts", "")
        leave_the_page_out(terminal)
        assert terminal.end() == 0
    assert "warning: lookout.toml: chains[0].rpc: chain 137 has only one endpoint" in terminal.shown
    settings = read_config(tmp_path / "lookout.toml")
    (own,), (hosted,) = settings.sources["indexer"], settings.sources["hosted-indexer"]
    assert (own.kind, own.pointer) == ("json", "/status/lastBlock")  # type: ignore[attr-defined]
    assert hosted.kind == "squid"  # type: ignore[attr-defined]
    assert [service.checks[0].url for service in settings.services] == [f"{base}/json/137"], (
        "what was before is taken back"
    )


def test_a_secret_is_kept_in_a_file_of_its_own_and_never_shown_again(tmp_path: Path) -> None:
    environment = tmp_path / "lookout.environment"
    environment.write_text("LOOKOUT_RPC_1='of an earlier configuration'")
    environment.chmod(0o644)
    secrets = {
        "LOOKOUT_RPC_1": f"node.example/v3/{KEY}",
        "LOOKOUT_STORE": "lookout:pass%20word@db.example/lookout",
        "LOOKOUT_ALERT": "user:word@alerts.example",
    }
    with at_a_terminal(tmp_path, "init", "--no-probe", HOME_NODE="waku.example") as terminal:
        terminal.answer("A chain", "1")
        terminal.answer("A chain", "")
        terminal.answer("RPC endpoint 1", f"https://{secrets['LOOKOUT_RPC_1']}")
        terminal.answer("Keep it out of the file, in ${LOOKOUT_RPC_1}? [Y/n]", "")
        terminal.answer("RPC endpoint 2", "https://user:open@node.example")
        terminal.answer("Keep it out of the file", "n")
        terminal.answer("RPC endpoint 3", "")
        terminal.answer("Your own indexer", "squid:https://i.example")
        terminal.answer("that others run", "")
        terminal.answer("A service of your own", "")
        terminal.answer("The ppoi node", "")
        terminal.answer("Messaging", "https://${HOME_NODE}/waku")
        terminal.answer("hears broadcasters", "")
        terminal.answer("Store: ", f"postgresql://{secrets['LOOKOUT_STORE']}")
        terminal.answer("in ${LOOKOUT_STORE}?", "y")
        terminal.answer("with a role that can only read", "postgresql://reader@db.example/lookout")
        terminal.answer("Alerts", f"json://{secrets['LOOKOUT_ALERT']}")
        terminal.answer("in ${LOOKOUT_ALERT}?", "y")
        terminal.answer("Alerts", "")
        leave_the_page_out(terminal)
        assert terminal.end() == 0
    assert stat.S_IMODE(environment.stat().st_mode) == 0o640
    lines = [f"{name}='{value}'" for name, value in secrets.items()]
    assert environment.read_text().splitlines() == ["LOOKOUT_RPC_1='of an earlier configuration'", *lines]
    text = (tmp_path / "lookout.toml").read_text()
    assert '    "https://${LOOKOUT_RPC_1}",\n    "https://user:open@node.example",\n' in text
    assert 'url = "postgresql://${LOOKOUT_STORE}"' in text
    assert 'targets = {json = "json://${LOOKOUT_ALERT}"}' in text
    for secret in (KEY, "pass%20word", "user:word"):
        assert secret not in text
        assert terminal.shown.count(secret) == 1  # as it was typed
    assert f"  export LOOKOUT_ENV_FILE={environment} " in terminal.shown
    assert "  lookout alerts test\n" in terminal.shown
    variables = {"LOOKOUT_ENV_FILE": str(environment), "HOME_NODE": "waku.example"}
    done = lookout(tmp_path, "check-config", environment=variables)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("key", [pytest.param(CTRL_C, id="Ctrl-C"), pytest.param(CTRL_D, id="Ctrl-D")])
def test_whoever_breaks_off_leaves_everything_as_it_was(key: str, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text("precious")
    with at_a_terminal(tmp_path, "init", "--force", "--no-probe") as terminal:
        terminal.answer("A chain", "1")
        terminal.answer("A chain", "")
        terminal.answer("RPC endpoint 1", "https://a.example")
        terminal.wait_for("RPC endpoint 2")
        assert terminal.break_off(key) == 130
    assert "Nothing is written.\n" in terminal.shown
    assert [each.name for each in tmp_path.iterdir()] == ["lookout.toml"]
    assert (tmp_path / "lookout.toml").read_text() == "precious"


def test_ctrl_c_ends_a_probe_that_takes_long(tmp_path: Path, base: str) -> None:
    order = Request(f"{base}/control", b'{"target":"rpc/56/a","fault":"hang"}')  # noqa: S310  of our own
    urlopen(order, timeout=60).close()  # noqa: S310
    with at_a_terminal(tmp_path, "init", TERM="xterm") as terminal:  # which can show that it waits
        terminal.answer("A chain", "56")
        terminal.answer("A chain", "")
        terminal.answer("RPC endpoint 1", f"{base}/rpc/56/a")
        terminal.wait_for("asking, for up to 10 s")
        assert terminal.break_off(CTRL_C) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_replaced_only_if_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text("precious")
    with at_a_terminal(tmp_path, "init", "--no-probe") as terminal:
        terminal.answer("lookout.toml exists. Replace it in the end? [y/N]", "")
        assert terminal.end() == 2
    assert "lookout: lookout.toml: already exists; choose another name, or replace it with --force\n" in terminal.shown
    assert path.read_text() == "precious"
    with at_a_terminal(tmp_path, "init", "--no-probe") as terminal:
        terminal.answer("lookout.toml exists. Replace it in the end? [y/N]", "y")
        terminal.answer("A chain", "")
        terminal.answer("A service of your own", "")
        terminal.answer("Messaging", "https://waku.example")
        terminal.answer("Store: ", "")
        terminal.answer("Alerts", "")
        leave_the_page_out(terminal)
        assert terminal.end() == 0
    assert [table.url for table in read_config(path).sources["messaging"]] == ["https://waku.example"]  # type: ignore[attr-defined]


def test_nothing_is_written_if_nothing_is_named(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "init") as terminal:
        terminal.answer("A chain", "gnosis")
        terminal.answer("A chain", "")
        terminal.answer("RPC endpoint 1, of three or more from different providers (Enter: leave Gnosis out)", "")
        terminal.answer("A service of your own", "")
        terminal.answer("Messaging", "")
        terminal.answer("Store: ", "")
        terminal.answer("Alerts", "")
        leave_the_page_out(terminal)
        assert terminal.end() == 2
    assert terminal.shown.endswith("lookout: no chain and no service was named, so nothing is written\n")
    assert list(tmp_path.iterdir()) == []
