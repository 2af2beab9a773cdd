"""``lookout init`` as a newcomer meets it: questions on a terminal, with real upstreams that are asked meanwhile."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

import pytest

from lookout.config.file import read_config
from tests.commands import LOOKOUT, lookout
from tests.integration.terminal import CTRL_C, CTRL_D, at_a_terminal
from tests.leases import or_skipped
from tests.postgres import a_postgres, from_a_wheel

KEY: Final = "0123456789abcdef0123456789abcdef"
NOBODY: Final = "http://127.0.0.1:1"  # nothing listens there


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the simulated upstreams."""
    with subprocess.Popen(
        [LOOKOUT, "sim", "--listen", "127.0.0.1:0"],
        cwd=tmp_path_factory.mktemp("sim"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[3].rstrip("/")
        process.kill()


@pytest.mark.first
def test_two_chains_with_every_service_take_twenty_four_answers(tmp_path: Path, base: str) -> None:
    answers = [
        ("Chains: ", "ethereum, 137"),
        *((f"Endpoint {n}", f"{base}/rpc/1/{letter}") for n, letter in enumerate("abc", 1)),
        ("Endpoint 4", ""),
        *((f"Endpoint {n}", f"{base}/rpc/137/{letter}") for n, letter in enumerate("abc", 1)),
        ("Endpoint 4", ""),
        ("Your own indexer of Ethereum", f"{base}/squid/1/graphql"),
        ("on purpose [5]", ""),
        ("The indexer of Ethereum that others run", ""),
        ("Your own indexer of Polygon", f"{base}/subgraph/137"),
        ("on purpose [5]", ""),
        ("The indexer of Polygon that others run", f"{base}/ponder"),
        ("on purpose [5]", ""),
        ("The ppoi node", f"{base}/ppoi"),
        ("The list that it has to have", ""),
        ("On which chains [Ethereum, Polygon]", ""),
        ("Messaging", f"{base}/waku"),
        ("Broadcasters", "same"),
        ("On which chains [Ethereum, Polygon]", "polygon"),
        ("Store [sqlite:lookout.db]", ""),
        ("Address (Enter: none)", ""),
    ]
    with at_a_terminal(tmp_path, "init") as terminal:
        for question, answer in answers:
            terminal.answer(question, answer)
        assert terminal.end() == 0
    shown = terminal.shown
    assert shown.count("  chain 1, agrees: block ") == 2
    assert shown.count("  chain 137, agrees: block ") == 2
    assert "  recognised: squid, position " in shown
    assert "  recognised: subgraph, position " in shown
    assert "  recognised: ponder, position " in shown
    assert "  Ethereum: current: synced: position " in shown
    assert "  Polygon: current: responding: " in shown
    assert "Warning" not in shown
    assert shown.endswith(
        "\nlookout.toml is written; only you can read it. Next:\n"
        "  lookout check-config && lookout probe\n"
        "  lookout run\n"
        "\nThen the status page is at http://127.0.0.1:8080/\n"
    )
    path = tmp_path / "lookout.toml"
    assert [each.name for each in tmp_path.iterdir()] == ["lookout.toml"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == TWO_CHAINS.replace("BASE", base)
    checked = lookout(tmp_path, "check-config")
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "ok\n", "")
    assert lookout(tmp_path, "probe").returncode == 0
    assert len(answers) == 24


TWO_CHAINS = """\
# Written by lookout init. What is not here has its default: docs/configuration.md explains every key.
# ${NAME} in a value is the environment variable NAME; so secrets need not be in this file.

[store]
url = "sqlite:lookout.db"           # a file, or "postgresql://user@host/database"

# Chains, each with three RPC endpoints or more: the second-highest of their heights is the head, so one may be wrong.

[[chains]]
id = 1                              # Ethereum
rpc = [
    "BASE/rpc/1/a",
    "BASE/rpc/1/b",
    "BASE/rpc/1/c",
]

[[chains]]
id = 137                            # Polygon
rpc = [
    "BASE/rpc/137/a",
    "BASE/rpc/137/b",
    "BASE/rpc/137/c",
]

# The private-proof-of-innocence node.

[ppoi]
url = "BASE/ppoi"
required_list = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
chains = [1, 137]

# The operator's own indexers, one for each chain.

[[indexer]]
chain = 1                           # Ethereum
kind = "squid"                      # squid, subgraph, ponder, envio, json or evm
url = "BASE/squid/1/graphql"
confirmations = 5                   # blocks it stays behind the head on purpose

[[indexer]]
chain = 137                         # Polygon
kind = "subgraph"                   # squid, subgraph, ponder, envio, json or evm
url = "BASE/subgraph/137"
confirmations = 5                   # blocks it stays behind the head on purpose

# Indexers that somebody else runs.

[[hosted-indexer]]
chain = 137                         # Polygon
kind = "ponder"
url = "BASE/ponder"
confirmations = 5

# Your own waku node, asked over REST. It has to run with --rest-admin=true to list its peers.

[messaging]
url = "BASE/waku"

[broadcasters]
url = "BASE/waku"
chains = [137]
"""


def test_a_wrong_answer_is_explained_and_asked_for_again(tmp_path: Path, base: str) -> None:
    with at_a_terminal(tmp_path, "init") as terminal:
        terminal.answer("Chains: ", "polygn")
        terminal.wait_for("polygn: no chain of this name is known; did you mean Polygon?")
        terminal.answer("Chains: ", "polygon")
        terminal.answer("Endpoint 1", "https://user:p#w@node.example")
        terminal.wait_for("rpc[0]: has a #, / or ? in its user or password")
        terminal.answer("Endpoint 1", "https://node.example/${NO_SUCH_KEY}")
        terminal.wait_for("rpc[0]: the environment variable NO_SUCH_KEY is not set")
        terminal.answer("Endpoint 1", f"{base}/rpc/137/a")
        terminal.answer("Endpoint 2", f"{base}/rpc/137/a/")
        terminal.wait_for("rpc[1]: is the same endpoint as rpc[0]")
        terminal.answer("Endpoint 2", f"{base}/rpc/1/a")
        terminal.wait_for("a node of another chain (1 instead of 137)")
        terminal.wait_for("wrong_chain: check its address in the configuration")
        terminal.answer("Keep it anyway? [y/N]", "")
        terminal.answer("Endpoint 2", "")
        terminal.answer("Your own indexer", f"{NOBODY}/graphql")
        terminal.wait_for("whatever its kind: not reached: nothing listens at its address")
        terminal.wait_for("refused: start the service, or ask those who run it; or check its host and port")
        terminal.answer("Its kind", "graphql")
        terminal.wait_for('indexer[0].kind: "graphql" is not allowed; it has to be one of squid,')
        terminal.answer("Its kind", "")
        terminal.answer("Your own indexer", f"{base}/json/137")
        terminal.wait_for("squid: no usable answer: HTTP 405")
        terminal.answer("Its kind", "json")
        terminal.answer("pointer: ", "/status/lastBlock")
        terminal.answer("on purpose", "many")
        terminal.wait_for('indexer[0].confirmations: "many" is not allowed; it has to be a whole number')
        terminal.answer("Your own indexer", f"{base}/json/137")
        terminal.answer("Its kind", "json")
        terminal.answer("pointer: ", "/status/lastBlock")
        terminal.answer("on purpose", "6")
        terminal.answer("that others run", f"{NOBODY}/graphql")
        terminal.answer("Its kind", "squid")
        terminal.answer("on purpose", "")
        terminal.wait_for("Polygon: unknown: unreachable, refused: not reached: nothing listens at its address")
        terminal.answer("Keep it anyway? [y/N]", "y")
        terminal.answer("The ppoi node", "")
        terminal.answer("Messaging", "")
        terminal.answer("Broadcasters", "")
        terminal.answer("Store [", "mysql://db")
        terminal.wait_for("store.url: has to begin with sqlite: and a path, or be a postgresql:// address")
        terminal.answer("Store [", "sqlite:no/such/lookout.db")
        terminal.wait_for(f"there is no folder {tmp_path}/no/such; make it before you run this")
        terminal.answer("Address", "no address")
        terminal.wait_for("alerts.targets.target: Apprise does not understand this address")
        terminal.answer("Address", "")
        assert terminal.end() == 0
    assert "Warning: chains[0].rpc: chain 137 has only one endpoint" in terminal.shown
    settings = read_config(tmp_path / "lookout.toml")
    (own,), (hosted,) = settings.sources["indexer"], settings.sources["hosted-indexer"]
    assert (own.kind, own.pointer, own.confirmations) == ("json", "/status/lastBlock", 6)  # type: ignore[attr-defined]
    assert hosted.kind == "squid"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        pytest.param(0o640, 0o640, id="a group that may read it still may"),
        pytest.param(0o644, 0o600, id="what everybody could read is for its owner alone"),
    ],
)
def test_a_secret_is_kept_in_a_file_of_its_own_and_never_shown_again(mode: int, kept: int, tmp_path: Path) -> None:
    (tmp_path / "lookout.environment").write_text("LOOKOUT_ETHEREUM_RPC_1='mine'")
    (tmp_path / "lookout.environment").chmod(mode)
    with at_a_terminal(tmp_path, "init", "--no-probe", HOME_NODE="waku.example") as terminal:
        terminal.answer("Chains: ", "1")
        terminal.answer("Endpoint 1", f"https://node.example/v3/{KEY}")
        terminal.answer("Keep that out of the file, in ${LOOKOUT_ETHEREUM_RPC_1_2}? [Y/n]", "")
        terminal.answer("Endpoint 2", "https://user:open@node.example")
        terminal.answer("Keep that out of the file", "n")
        terminal.answer("Endpoint 3", "https://c.example")
        terminal.answer("Endpoint 4", "")
        terminal.answer("Your own indexer", "https://i.example")
        terminal.answer("Its kind", "squid")
        terminal.answer("on purpose", "")
        terminal.answer("that others run", "")
        terminal.answer("The ppoi node", "")
        terminal.answer("Messaging", "https://${HOME_NODE}/waku")
        terminal.answer("Broadcasters", "")
        terminal.answer("Store [", "postgresql://lookout:pass%20word@db.example/lookout")
        terminal.answer("in ${LOOKOUT_STORE}?", "y")
        terminal.answer("with a role that can only read", "")
        terminal.answer("Address", "json://user:word@alerts.example")
        terminal.answer("in ${LOOKOUT_ALERTS_JSON}?", "y")
        terminal.answer("Address", "")
        assert terminal.end() == 0
    environment = tmp_path / "lookout.environment"
    assert stat.S_IMODE(environment.stat().st_mode) == kept
    assert environment.read_text() == (
        "LOOKOUT_ETHEREUM_RPC_1='mine'\n"
        f"LOOKOUT_ETHEREUM_RPC_1_2='{KEY}'\n"
        "LOOKOUT_STORE='pass%20word'\n"
        "LOOKOUT_ALERTS_JSON='user:word@alerts.example'\n"
    )
    text = (tmp_path / "lookout.toml").read_text()
    assert '"https://node.example/v3/${LOOKOUT_ETHEREUM_RPC_1_2}"' in text
    assert '"https://user:open@node.example"' in text
    assert 'url = "postgresql://lookout:${LOOKOUT_STORE}@db.example/lookout"' in text
    assert 'targets = {json = "json://${LOOKOUT_ALERTS_JSON}"}' in text
    for secret in (KEY, "pass%20word", "user:word"):
        assert secret not in text
        assert terminal.shown.count(secret) == 1  # as it was typed
    assert f"  export LOOKOUT_ENV_FILE={environment} " in terminal.shown
    assert "add lookout.environment to /etc/lookout/environment" in terminal.shown
    assert "  lookout alerts test\n" in terminal.shown
    variables = {"LOOKOUT_ENV_FILE": str(environment), "HOME_NODE": "waku.example"}
    done = lookout(tmp_path, "check-config", environment=variables)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("key", [pytest.param(CTRL_C, id="Ctrl-C"), pytest.param(CTRL_D, id="Ctrl-D")])
def test_whoever_breaks_off_leaves_everything_as_it_was(key: str, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text("precious")
    with at_a_terminal(tmp_path, "init", "--force", "--no-probe") as terminal:
        terminal.answer("Chains: ", "1")
        terminal.answer("Endpoint 1", "https://a.example")
        terminal.wait_for("Endpoint 2")
        assert terminal.break_off(key) == 130
    assert "Nothing is written.\n" in terminal.shown
    assert [each.name for each in tmp_path.iterdir()] == ["lookout.toml"]
    assert (tmp_path / "lookout.toml").read_text() == "precious"


def test_ctrl_c_ends_a_probe_that_takes_long(tmp_path: Path, base: str) -> None:
    order = Request(f"{base}/control", b'{"target":"rpc/56/a","fault":"hang"}')  # noqa: S310  of our own
    urlopen(order, timeout=60).close()  # noqa: S310
    with at_a_terminal(tmp_path, "init", TERM="xterm") as terminal:  # which can show that it waits
        terminal.answer("Chains: ", "56")
        terminal.answer("Endpoint 1", f"{base}/rpc/56/a")
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
        terminal.answer("Chains: ", "")
        terminal.answer("Messaging", "https://waku.example")
        terminal.answer("Store [", "")
        terminal.answer("Address", "")
        assert terminal.end() == 0
    assert [table.url for table in read_config(path).sources["messaging"]] == ["https://waku.example"]  # type: ignore[attr-defined]


def test_answers_are_not_lost_if_the_file_cannot_be_written(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "init", "--no-probe", "new.toml") as terminal:
        terminal.answer("Chains: ", "")
        terminal.answer("Messaging", "https://key:word@waku.example")
        terminal.answer("in ${LOOKOUT_MESSAGING}?", "y")
        (tmp_path / "new.toml").write_text("somebody else's")
        (tmp_path / "taken.environment").write_text("LOOKOUT_MESSAGING=theirs\n")
        terminal.answer("Store [", "")
        terminal.answer("Address", "")
        terminal.wait_for("new.toml exists by now.")
        terminal.answer("Write it to", "taken.toml")
        terminal.wait_for("taken.environment has another LOOKOUT_MESSAGING.")
        terminal.answer("Write it to", "no/such/folder.toml")
        terminal.wait_for("No such file or directory")
        terminal.answer("Write it to", "newer.toml")
        assert terminal.end() == 0
    assert "  lookout run -c newer.toml\n" in terminal.shown
    assert (tmp_path / "new.toml").read_text() == "somebody else's"
    assert (tmp_path / "taken.environment").read_text() == "LOOKOUT_MESSAGING=theirs\n"
    variables = {"LOOKOUT_ENV_FILE": str(tmp_path / "newer.environment")}
    assert lookout(tmp_path, "check-config", "-c", "newer.toml", environment=variables).stdout == "ok\n"


def test_nothing_is_written_if_nothing_is_named(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "init") as terminal:
        terminal.answer("Chains: ", "gnosis")
        terminal.answer("Endpoint 1", "")
        terminal.wait_for("Gnosis is left out: without an endpoint there is no head.")
        terminal.answer("Messaging", "")
        terminal.answer("Store [", "")
        assert terminal.end() == 2
    assert terminal.shown.endswith("lookout: no chain and no service was named, so nothing is written\n")
    assert list(tmp_path.iterdir()) == []


def test_a_chain_that_is_not_known_is_asked_about(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "init", "--no-probe") as terminal:
        terminal.answer("Chains: ", "31337, 1")
        terminal.answer("Its name", "Hard hat")
        terminal.answer("Seconds between its blocks", "soon")
        terminal.answer("Is it a test network? [y/N]", "y")
        terminal.wait_for('chains[0].block_time_s: "soon" is not allowed; it has to be a number from')
        terminal.answer("Its name", "Hard hat")
        terminal.answer("Seconds between its blocks", "0.5")
        terminal.answer("Is it a test network? [y/N]", "y")
        for _ in range(2):
            terminal.answer("Endpoint 1", "https://a.example")
            terminal.answer("Endpoint 2", "")
        for _ in range(2):
            terminal.answer("Your own indexer", "")
            terminal.answer("that others run", "")
        terminal.answer("The ppoi node", "https://ppoi.example")
        terminal.answer("The list", "my-list")
        terminal.answer("On which chains [Ethereum]", "31337, polygon")
        terminal.wait_for("polygon: is not among your chains")
        terminal.answer("On which chains [Ethereum]", "31337")
        terminal.answer("What the node calls Hard hat [Hard hat]", "Hardhat")
        terminal.answer("Messaging", "")
        terminal.answer("Broadcasters", "")
        terminal.answer("Store [", "")
        terminal.answer("Address", "")
        assert terminal.end() == 0
    settings = read_config(tmp_path / "lookout.toml")
    assert (settings.chains[0].name, settings.chains[0].block_time_s) == ("Hard hat", 0.5)
    assert settings.chains[0].test_network
    (ppoi,) = settings.sources["ppoi"]
    assert (ppoi.required_list, ppoi.chains, ppoi.networks) == ("my-list", (31337,), {"31337": "Hardhat"})  # type: ignore[attr-defined]


def test_a_database_is_tried_and_asked_for_a_role_that_only_reads(tmp_path: Path) -> None:
    with or_skipped(a_postgres(from_a_wheel().values[0])) as server:  # type: ignore[arg-type]
        url = server.url(server.a_database())
        with at_a_terminal(tmp_path, "init") as terminal:
            terminal.answer("Chains: ", "")
            terminal.answer("Messaging", f"{NOBODY}/waku")
            terminal.wait_for("unknown: unreachable, refused: not reached: nothing listens at its address")
            terminal.answer("Keep it anyway?", "y")
            terminal.answer("Store [", "postgresql://nobody@127.0.0.1:1/lookout")
            terminal.answer("with a role that can only read", "")
            terminal.wait_for("failed: ")
            terminal.answer("Keep it anyway?", "n")
            terminal.answer("Store [", url)
            terminal.answer("with a role that can only read", "sqlite:x")
            terminal.wait_for("store.read_url: ")
            terminal.answer("with a role that can only read", url)
            terminal.wait_for("can be used")
            terminal.answer("Address", "")
            assert terminal.end() == 0
    settings = read_config(tmp_path / "lookout.toml")
    assert (settings.store.url, settings.store.read_url) == (url, url)
