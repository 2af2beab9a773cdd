"""``lookout init`` with options: nothing is asked, everything is checked, and what is refused says why."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.config.file import read_config
from tests.cases import cases
from tests.commands import lookout_here
from tests.integration.sim_client import a_simulation
from tests.web import Answering, serving

SOURCES: Final = Path(__file__).parent.parent / "data" / "sources"
GOLDEN: Final = Path(__file__).parent.parent / "data" / "init" / "options.toml"
KEY: Final = "0123456789abcdef0123456789abcdef"
ETHEREUM: Final = tuple(f"--rpc=ethereum=https://{letter}.example" for letter in "abc")
NEXT: Final = """
lookout.toml is written. Next:
  lookout check-config && lookout probe
  lookout run

Then the status page is at http://127.0.0.1:8080/
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are used."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_simulation(tmp_path_factory.mktemp("sim")) as base:
        yield base


class RecordedIndexer(Answering):
    """Answers every POST, and GET /ponder/status, with the status that a real indexer gave."""

    def do_POST(self) -> None:
        answer = {"/subgraph": "subgraph-meta", "/envio": "envio-meta"}.get(self.path)
        self.send(200 if answer else 404, (SOURCES / f"{answer}.json").read_bytes() if answer else b"")

    def do_GET(self) -> None:
        self.send(200 if self.path == "/ponder/status" else 404, (SOURCES / "ponder-status.json").read_bytes())


def init(*options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["init", "--no-probe", *options])
    return done.exit_code, done.stdout, done.stderr


def test_a_table_of_options_is_the_whole_file(folder: Path) -> None:
    options = (
        *ETHEREUM,
        "--chain=31337,Hard hat,0.5,test",
        "--rpc=31337=https://hardhat.example",
        "--indexer=1=squid:https://squid.example",
        "--indexer=31337=subgraph:https://index.example/graphql#QmDeployment",
        "--hosted-indexer=ethereum=json:https://json.example/status?full=1#/status/lastBlock",
        "--service=bundler@ethereum=https://bundler.example",
        "--service=Relayer=https://relayer.example/health",
        "--ppoi=https://ppoi.example",
        "--messaging=https://waku.example",
        "--broadcasters=31337,1=https://waku.example",
        "--store=postgresql://lookout@db.example/lookout",
        "--store-read=postgresql://reader@db.example/lookout",
        "--alert=ops=json://alerts.example",
        "--alert=json://other.example",
        "--title=My wallet",
        "--operator=us",
        "--contact=mailto:us@example.org",
    )
    exit_code, said, warned = init(*options)
    assert (exit_code, said) == (0, NEXT.replace("  lookout run", "  lookout alerts test\n  lookout run"))
    assert warned.count("\n") == 1
    assert "lookout.toml: chains[0].rpc: chain 31337 has only one endpoint" in warned
    assert (folder / "lookout.toml").read_text() == GOLDEN.read_text()
    assert stat.S_IMODE((folder / "lookout.toml").stat().st_mode) == 0o600
    assert CliRunner().invoke(main, ["check-config"]).stdout == "ok\n"
    (folder / "lookout.toml").unlink()
    assert init("-", *options)[1] == GOLDEN.read_text()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "why"), cases("init_options", "what is refused says why shows no secret and writes nothing")
)
def test_what_is_refused_says_why_shows_no_secret_and_writes_nothing(
    options: list[str], why: str, folder: Path
) -> None:
    assert init(*options) == (2, "", f"lookout: {why}\n")
    assert KEY not in why
    assert list(folder.iterdir()) == []


def test_a_secret_among_the_options_is_warned_of_and_one_in_a_variable_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_KEY", KEY)
    assert init("--messaging=https://waku.example/${NODE_KEY}", "variable.toml")[2] == ""
    assert KEY not in (folder / "variable.toml").read_text()
    _, said, warned = init(f"--messaging=https://waku.example/{KEY}")
    assert warned == (
        "lookout: warning: lookout.toml: addresses in it may have secrets in them;"
        " write '${NAME}' in their place to take them from the environment\n"
    )
    assert KEY not in said


def test_kinds_are_recognised_and_what_was_found_is_shown(folder: Path, base: str) -> None:
    endpoints = [f"--rpc=1={base}/rpc/1/{letter}" for letter in "abc"]
    with serving(RecordedIndexer) as recorded:
        indexers = {f"{base}/squid/1/graphql": "squid", f"{base}/rpc/1/a": "evm"}
        indexers |= {f"{recorded}/{kind}": kind for kind in ("subgraph", "ponder", "envio")}
        for url, kind in indexers.items():
            done = lookout_here(folder, "init", "--force", *endpoints, f"--indexer=1={url}")
            assert done.returncode == 0
            assert done.stderr.startswith(f"recognised chain 1's indexer: {kind}, ")
            assert "head: block " in done.stdout
            (indexer,) = read_config(folder / "lookout.toml").sources["indexer"]
            assert indexer.kind == kind  # type: ignore[attr-defined]
