"""``lookout init`` as a newcomer meets it: questions on a terminal, with real upstreams that are asked meanwhile."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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


def leave_out(terminal: Terminal, *options: str) -> None:
    for option in options:
        terminal.answer(option, "")


CHAIN, RPC, INDEXER, HOSTED = "does not know", "RPC endpoint", "Your own indexer", "that others run"
SERVICE, PPOI, MESSAGING, BROADCASTERS = (
    "A service of your own",
    "The ppoi node",
    "Your waku node",
    "hears broadcasters",
)
STORE, READ, ALERT = "The store's address", "address for servers", "Apprise"
PAGE: Final = ("The title", "Who runs this", "An address or URL")


@pytest.mark.first
def test_two_chains_with_every_service_take_two_dozen_answers(tmp_path: Path, base: str) -> None:
    answers = [
        (CHAIN, ""),
        *((RPC, f"ethereum={base}/rpc/1/{letter}") for letter in "abc"),
        *((RPC, f"137={base}/rpc/137/{letter}") for letter in "abc"),
        (RPC, ""),
        (INDEXER, f"ethereum={base}/squid/1/graphql"),
        (INDEXER, f"polygon={base}/squid/137/graphql"),
        (INDEXER, ""),
        (HOSTED, f"polygon={base}/hosted/137/graphql"),
        (HOSTED, ""),
        (SERVICE, f"rpc provider@polygon=rpc:{base}/rpc/137/a"),
        (SERVICE, ""),
        (PPOI, f"{base}/ppoi"),
        (MESSAGING, f"{base}/waku"),
        (BROADCASTERS, f"polygon={base}/waku"),
        (STORE, ""),
        (READ, ""),
        (ALERT, ""),
        (PAGE[0], "My wallet"),
        (PAGE[1], ""),
        (PAGE[2], ""),
    ]
    assert len(answers) == 24
    with at_a_terminal(tmp_path, "init") as terminal:
        for question, answer in answers:
            terminal.answer(question, answer)
        assert terminal.end() == 0
    shown = terminal.shown
    assert shown.count("  agrees: block ") == 4
    assert shown.count("indexer: squid, position ") == 3
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
    assert path.read_text() == GOLDEN.read_text().replace("BASE", base)
    checked = lookout(tmp_path, "check-config")
    assert (checked.returncode, checked.stdout) == (0, "ok\n")
    assert "no one is alerted of a failure" in checked.stderr  # no target was named
    assert lookout(tmp_path, "probe").returncode == 0


def test_a_wrong_answer_is_explained_and_asked_for_again(tmp_path: Path, base: str) -> None:
    with at_a_terminal(tmp_path, "init") as terminal:
        terminal.answer(CHAIN, "31337,Hard hat,soon")
        terminal.wait_for('  "soon" is not allowed; it has to be a number from')
        terminal.answer(CHAIN, "")
        terminal.answer(RPC, f"polygn={base}/rpc/137/a")
        terminal.wait_for("no known chain is called 'polygn'; did you mean Polygon? Otherwise give its id")
        terminal.answer(RPC, "polygon=https://node.example/${NO_SUCH_KEY}")
        terminal.wait_for("  the environment variable NO_SUCH_KEY is not set")
        terminal.answer(RPC, f"polygon={base}/rpc/137/a")
        terminal.answer(RPC, f"polygon={base}/rpc/137/a/")
        terminal.wait_for("  is the same endpoint as ")
        terminal.answer(RPC, f"polygon={base}/rpc/1/a")
        terminal.wait_for("a node of another chain (1 instead of 137)")
        terminal.wait_for("wrong_chain: check its address in the configuration")
        terminal.answer("Keep it anyway? [y/n]", "")
        terminal.answer("Keep it anyway? [y/n]", "n")
        terminal.answer(RPC, "")
        terminal.wait_for("  chain 137 has only one endpoint, so one that is wrong can make the chain's rows untrue;")
        terminal.answer(RPC, "")
        terminal.answer(INDEXER, f"137={base}/json/137")
        terminal.wait_for("no known kind fits the answers for chain 137 (squid: no usable answer: HTTP 405;")
        terminal.answer(INDEXER, f"137=json:{base}/json/137")
        terminal.wait_for('  kind "json" needs a JSON Pointer')
        terminal.answer(INDEXER, f"137=json:{base}/json/137#/status/lastBlock")
        terminal.answer(INDEXER, "")
        terminal.answer(HOSTED, f"137=squid:{NOBODY}/graphql")
        terminal.wait_for("Polygon: unknown: unreachable, refused: not reached: nothing listens at its address")
        terminal.wait_for("refused: start the service, or ask those who run it; or check its host and port")
        terminal.answer("Keep it anyway? [y/n]", "y")
        terminal.answer(HOSTED, "")
        terminal.answer(SERVICE, f"relayer={NOBODY}")
        terminal.wait_for("unknown: unreachable, refused")
        terminal.answer("Keep it anyway? [y/n]", "y")
        terminal.answer(SERVICE, "")
        terminal.answer(PPOI, "back")
        terminal.answer(SERVICE, "back")
        terminal.answer(SERVICE, f"relayer=http:{base}/json/137")
        terminal.wait_for("current: responding")
        leave_out(terminal, SERVICE, PPOI, MESSAGING, BROADCASTERS)
        terminal.answer(STORE, "mysql:db")
        terminal.wait_for("  has to begin with sqlite: and a path, or be a postgresql:// address")
        leave_out(terminal, STORE, READ)
        terminal.answer(ALERT, "no address")
        terminal.wait_for("  Apprise does not understand this address")
        leave_out(terminal, ALERT, *PAGE)
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
    environment.write_text("LOOKOUT_RPC='of an earlier configuration'")
    environment.chmod(0o644)
    secrets = {
        "LOOKOUT_RPC": f"node.example/v3/{KEY}",
        "LOOKOUT_STORE": "lookout:pass%20word@db.example/lookout",
        "LOOKOUT_ALERT": "user:word@alerts.example",
    }
    with at_a_terminal(tmp_path, "init", "--no-probe", HOME_NODE="waku.example") as terminal:
        terminal.answer(CHAIN, "")
        terminal.answer(RPC, f"1=https://{secrets['LOOKOUT_RPC']}")
        terminal.answer("Keep it out of the file, in ${LOOKOUT_RPC}? [Y/n]", "")
        terminal.answer(RPC, "1=https://user:open@node.example")
        terminal.answer("Keep it out of the file", "n")
        leave_out(terminal, RPC, RPC, INDEXER, HOSTED, SERVICE, PPOI)
        terminal.answer(MESSAGING, "https://${HOME_NODE}/waku")
        terminal.answer(BROADCASTERS, "")
        terminal.answer(STORE, f"postgresql://{secrets['LOOKOUT_STORE']}")
        terminal.answer("in ${LOOKOUT_STORE}?", "y")
        terminal.answer(READ, "postgresql://reader@db.example/lookout")
        terminal.answer(ALERT, f"json://{secrets['LOOKOUT_ALERT']}")
        terminal.answer("in ${LOOKOUT_ALERT}?", "y")
        leave_out(terminal, ALERT, *PAGE)
        assert terminal.end() == 0
    assert stat.S_IMODE(environment.stat().st_mode) == 0o640
    lines = [f"{name}='{value}'" for name, value in secrets.items()]
    assert environment.read_text().splitlines() == ["LOOKOUT_RPC='of an earlier configuration'", *lines]
    text = (tmp_path / "lookout.toml").read_text()
    assert '    "https://${LOOKOUT_RPC}",\n    "https://user:open@node.example",\n' in text
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
        terminal.answer(CHAIN, "")
        terminal.answer(RPC, "1=https://a.example")
        terminal.wait_for(RPC)
        assert terminal.break_off(key) == 130
    assert "Nothing is written.\n" in terminal.shown
    assert [each.name for each in tmp_path.iterdir()] == ["lookout.toml"]
    assert (tmp_path / "lookout.toml").read_text() == "precious"


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
        leave_out(terminal, CHAIN, RPC, RPC, INDEXER, HOSTED, SERVICE, PPOI)
        terminal.answer(MESSAGING, "https://waku.example")
        leave_out(terminal, BROADCASTERS, STORE, READ, ALERT, *PAGE)
        assert terminal.end() == 0
    assert [table.url for table in read_config(path).sources["messaging"]] == ["https://waku.example"]  # type: ignore[attr-defined]
