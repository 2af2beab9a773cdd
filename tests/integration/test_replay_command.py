"""``lookout replay`` as a person uses it."""

import json
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lookout.cli import main
from tests.commands import LOOKOUT

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
START = '{"at":"2026-11-05T12:00:00.000Z","kind":"start"}\n'
PEERS = (
    '{"at":"2026-11-05T12:00:01.000Z","kind":"probe","service":"messaging","chainId":null,'
    '"outcome":"answered","peers":5}\n'
)


def head(second: int, read_second: int) -> str:
    """A head of chain 1, agreed on and read so many seconds after noon."""
    at, read_at = (f"2026-11-05T12:00:{number:02}.000Z" for number in (second, read_second))
    return f'{{"at":"{at}","kind":"head","chainId":1,"height":7,"blockAt":"{read_at}","readAt":"{read_at}"}}\n'


@pytest.mark.clause("S18")
def test_a_line_about_an_indexers_list_changes_its_row_with_the_next_probe(tmp_path: Path) -> None:
    def probe(second: int) -> str:
        return (
            f'{{"at":"2026-11-05T12:00:{second:02}.000Z","kind":"probe","service":"indexer","chainId":1,'
            '"outcome":"answered","position":7}\n'
        )

    def shown() -> tuple[str, str, dict[str, int]]:
        rows = json.loads((tmp_path / "live.json").read_bytes())["checks"]
        row = next(row for row in rows if (row["service"], row["chainId"]) == ("indexer", 1))
        return row["status"], row["reason"], row["metrics"]

    found = (
        '{"at":"2026-11-05T12:00:05.000Z","kind":"coverage","service":"indexer","chainId":1,"missing":2,"extra":1}\n'
    )
    elsewhere = found.replace('"chainId":1', '"chainId":5')
    log = START + head(3, 3) + probe(4) + found + elsewhere
    assert run(tmp_path, log).exit_code == 0
    assert shown() == ("current", "synced", {"position": 7, "head": 2})
    assert run(tmp_path, log + probe(6)).exit_code == 0
    assert shown() == ("degraded", "incomplete", {"position": 7, "head": 2, "missing": 2, "extra": 1})
    healed = found.replace(":05.", ":07.").replace(":2,", ":0,").replace(":1}", ":0}")
    assert run(tmp_path, log + probe(6) + healed + probe(8)).exit_code == 0
    assert shown() == ("current", "synced", {"position": 7, "head": 2})


def run(folder: Path, log: str | bytes, *options: str, config: Path = VECTORS / "edges.toml") -> Result:
    """In this process; what has to be one of its own is so below."""
    (folder / "log.jsonl").write_bytes(log if isinstance(log, bytes) else log.encode())
    arguments = ["log.jsonl", "-c", str(config), "--live", "live.json", "--history", "history.json", *options]
    with chdir(folder):
        return CliRunner().invoke(main, ["replay", *arguments])


def test_a_good_log_says_nothing_and_writes_both_documents(tmp_path: Path) -> None:
    outcome = run(tmp_path, START + PEERS)
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "", "")
    assert (
        (tmp_path / "live.json").read_bytes().startswith(b'{"schemaVersion":1,"generatedAt":"2026-11-05T12:00:01.000Z"')
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "live.json", "log.jsonl"]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        pytest.param("", "the log is empty: it has to begin with a start", id="empty"),
        pytest.param(
            PEERS, "line 1: only a start can stand here, at the beginning or after a stop", id="without a start"
        ),
        pytest.param(
            START + PEERS + START.replace("start", "stop"),
            "line 3: at is 2026-11-05T12:00:00.000Z, earlier than 2026-11-05T12:00:01.000Z before it;"
            " only a start may go back",
            id="out of order",
        ),
        pytest.param(
            START + head(2, 2) + head(3, 1),
            "line 3: readAt is 2026-11-05T12:00:01.000Z, earlier than 2026-11-05T12:00:02.000Z of the head before it"
            " on this chain",
            id="a head read before the one before it",
        ),
        pytest.param(
            START + PEERS[:40] + "\n", "line 2: not JSON: Input data was truncated", id="a cut line, then more"
        ),
    ],
)
def test_a_bad_log_is_refused_with_its_line_and_reason_and_nothing_is_written(
    log: str | bytes, reason: str, tmp_path: Path
) -> None:
    outcome = run(tmp_path, log)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"lookout: log.jsonl: {reason}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize("cut", [b'{"at":"2026-11-05T12:00', b'{"at":"\xc3', b"{"])
def test_a_last_line_cut_off_by_a_crash_is_a_warning(cut: bytes, tmp_path: Path) -> None:
    whole = run(tmp_path, START + PEERS)
    expected = (tmp_path / "live.json").read_bytes()
    outcome = run(tmp_path, (START + PEERS).encode() + cut)
    assert (whole.exit_code, outcome.exit_code) == (0, 0)
    assert outcome.stderr == "lookout: warning: log.jsonl: line 3: cut off in the middle, left out\n"
    assert (tmp_path / "live.json").read_bytes() == expected


def test_lines_of_other_checks_and_chains_are_skipped_with_one_warning(tmp_path: Path) -> None:
    others = (
        PEERS.replace('"messaging","chainId":null', '"indexer","chainId":5').replace("peers", "position")
        + PEERS.replace('"messaging","chainId":null', '"hosted-indexer","chainId":1').replace("peers", "position")
        + '{"at":"2026-11-05T12:00:02.000Z","kind":"head","chainId":5,"height":1,'
        + '"blockAt":"2026-11-05T12:00:00.000Z"}\n'
        + PEERS.replace(":01.", ":02.")
        .replace('"messaging","chainId":null', '"ppoi","chainId":5')
        .replace('"peers":5', '"position":5,"head":5')
    )
    outcome = run(tmp_path, START + others + PEERS.replace(":01.", ":02."))
    assert (outcome.exit_code, outcome.stderr) == (
        0,
        (
            "lookout: warning: log.jsonl: 4 lines skipped: the configuration does not have their check or chain"
            " (the first: indexer 5)\n"
        ),
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--until", "2026-11-05T11:59:59.999Z"],
            "lookout: log.jsonl: line 1: the log begins at 2026-11-05T12:00:00.000Z, later than asked for\n",
        ),
        (["--live", "log.jsonl"], "lookout: log.jsonl would be overwritten: it is also read from\n"),
        (["--history", str(VECTORS / "edges.toml")], "edges.toml would be overwritten: it is also read from\n"),
        (["--live", "no/such/file"], "lookout: no/such/file: No such file or directory\n"),
        (["--live", "/"], "lookout: /: Is a directory\n"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(options: list[str], reason: str, tmp_path: Path) -> None:
    outcome = run(tmp_path, START + PEERS, *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.endswith(reason)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["log.jsonl", "-c", "x.toml"], "nothing to do: give --live FILE, --history FILE or --compare FILE"),
        (["log.jsonl", "-c", "x.toml", "--live", "l"], "x.toml: cannot be read: No such file or directory"),
        (["log.jsonl", "-c", str(VECTORS / "edges.toml"), "--live", "l"], "log.jsonl: No such file or directory"),
        (["log.jsonl", "-c", "x.toml", "--live", "l", "--until", "noon"], "'noon' is not an instant like"),
    ],
)
def test_a_mistyped_call_is_answered_in_a_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    with chdir(tmp_path):
        outcome = CliRunner().invoke(main, ["replay", *arguments])
    assert outcome.exit_code == 2
    assert words in outcome.stderr


def test_a_log_can_come_from_a_pipe_and_a_document_go_to_a_device() -> None:
    arguments = ["-", "-c", str(VECTORS / "edges.toml"), "--live", "/dev/stdout", "--history", "/dev/null"]
    outcome = subprocess.run(
        [LOOKOUT, "replay", *arguments], input=START + PEERS, capture_output=True, text=True, check=True
    )
    assert outcome.stdout.startswith('{"schemaVersion":1')
    assert Path("/dev/null").is_char_device()


def test_years_of_silence_are_passed_over(tmp_path: Path) -> None:
    outcome = run(tmp_path, START + PEERS, "--until", "2999-01-01T00:00:00.000Z")
    assert outcome.exit_code == 0
    history = json.loads((tmp_path / "history.json").read_bytes())
    assert (history["from"], history["to"]) == ("2998-12-18T00:00:00Z", "2999-01-01T00:00:00Z")
    assert {row["buckets"] for row in history["rows"]} == {"?" * 4033, "." * 4033}
