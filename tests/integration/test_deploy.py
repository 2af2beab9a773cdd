"""The deployment kit: the units and the container file, held against systemd, the commands and the pages about them."""

import grp
import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.core.model import Gaps
from lookout.documents.reports import documents_of
from lookout.monitor.recorder import Recorder
from lookout.state.codec import encode_state
from lookout.state.log import Compared, Event, Started, Stopped, format_event
from lookout.store.sqlite import open_writer, read_snapshot
from tests.builders import INDEXER, NOON
from tests.commands import LOOKOUT
from tests.integration.planted import a_fresh_ledger
from tests.wait import until

ROOT: Final = Path(__file__).parent.parent.parent
UNITS: Final = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
TIMER: Final = ROOT / "deploy" / "systemd" / "lookout-backup.timer"
PAGE: Final = ROOT / "docs" / "start.md"
SCALE: Final = ROOT / "docs" / "scale.md"
INSTALLED: Final = "/opt/lookout/bin/lookout"
TIME_S: Final = 60
# The greatest exposure, as systemd-analyze reckons it: from 0 (none) to 100.
EXPOSURE: Final = {
    "lookout": 11,
    "lookout-monitor": 11,
    "lookout-server": 11,
    "lookout-server@": 11,
    "lookout-edge": 14,
    "lookout-backup": 11,
}

needs_systemd: Final = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze; on Debian: systemd"
)
of_each_unit: Final = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
of_each_unit_that_stays: Final = pytest.mark.parametrize(
    "unit", [unit for unit in UNITS if unit.stem != TIMER.stem], ids=lambda unit: unit.stem
)


def said(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_S, check=False)


def complaint(*arguments: str | Path) -> str:
    """What the command, in this process, has to complain of."""
    ran = CliRunner().invoke(main, [str(each) for each in arguments])
    assert (ran.exit_code == 0) == (ran.stderr == "")
    return ran.stderr


def values(unit: Path, key: str) -> list[str]:
    """What a unit says of a key, each time that it does."""
    text = unit.read_text().replace("\\\n", "")
    return [line.partition("=")[2] for line in text.splitlines() if line.partition("=")[0] == key]


def commands(unit: Path) -> list[list[str]]:
    """Every command of Lookout's that a unit runs, as words."""
    found = []
    for key in ("ExecStartPre", "ExecStart", "ExecReload"):
        for line in values(unit, key):
            words = shlex.split(line)
            script = words[2] if words[:2] == ["/bin/sh", "-c"] else line
            for part in re.split(r"&&|\|\||;", script):
                words = shlex.split(part)
                if words[0] == INSTALLED:
                    found.append(words[1 : words.index(">")] if ">" in words else words[1:])
    return found


def script_of(unit: Path, key: str, config: Path) -> str:
    """What a unit runs, as a shell runs it, with the command of this repository and another configuration."""
    (line,) = values(unit, key)
    script = shlex.split(line)[2] if line.startswith("/bin/sh -c ") else line
    return re.sub(r"/etc/lookout/\w+\.toml", str(config), script).replace(INSTALLED, str(LOOKOUT)).replace("%i", "8081")


def test_one_of_several_servers_is_run_like_the_only_one() -> None:
    lines = {unit.stem: unit.read_text().splitlines() for unit in UNITS}
    several, one = lines["lookout-server@"], lines["lookout-server"]
    other = [several_line for several_line, line in zip(several, one, strict=True) if several_line != line]
    assert [line.partition("=")[0] for line in other[1:]] == ["Description", "ExecStart"]


@needs_systemd
def test_systemd_finds_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    copies = []
    for unit in (*UNITS, TIMER):
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace(INSTALLED, str(LOOKOUT)))  # it looks whether the program is there
        copies.append(copy)
    ran = said("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *copies)
    assert (ran.stdout + ran.stderr, ran.returncode) == ("", 0)


@needs_systemd
@of_each_unit
def test_a_unit_is_allowed_no_more_than_it_needs(unit: Path) -> None:
    threshold = f"--threshold={EXPOSURE[unit.stem]}"
    ran = said("systemd-analyze", "security", "--no-pager", "--offline=true", threshold, unit)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@of_each_unit
def test_a_unit_runs_commands_that_there_are_on_a_configuration_that_is_right(unit: Path, tmp_path: Path) -> None:
    config = tmp_path / "lookout.toml"
    example = (ROOT / "lookout.example.toml").read_text()
    config.write_text(example.replace("[ping]\n", '[ping]\nurl = "https://ping.example.org"\n'))
    ran = commands(unit)
    assert ran
    for command in ran:
        name = command[0] if command[0] == "edge-config" else "check-config"  # the others would go on for ever
        assert command[command.index("-c") + 1].startswith("/etc/lookout/")
        assert complaint(command[0], "--help") == complaint(name, "-c", config) == ""


@of_each_unit_that_stays
def test_a_wrong_configuration_is_not_tried_again_for_ever(unit: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("nonsense = 1\n")
    script = script_of(unit, "ExecStart", wrong)
    ran = subprocess.run(
        ["/bin/sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=TIME_S, check=False
    )
    assert "nonsense" in ran.stderr
    assert values(unit, "RestartPreventExitStatus") == [str(ran.returncode)]
    # It would not count for another command before it.
    assert values(unit, "ExecStartPre") == []


@of_each_unit
def test_the_user_of_a_unit_is_made_by_the_file_for_sysusers(unit: Path) -> None:
    lines = (ROOT / "deploy/systemd/lookout.sysusers.conf").read_text().splitlines()
    made = {line.split()[1] for line in lines if line.startswith("u ")}
    assert set(values(unit, "User")) | set(values(unit, "Group")) <= made
    assert values(unit, "User")


def test_the_server_is_another_user_than_the_monitor_and_gets_none_of_its_secrets() -> None:
    monitors, servers = "-/etc/lookout/environment", "-/etc/lookout/server.environment"
    units = {unit.stem: unit for unit in UNITS}
    assert values(units["lookout-server"], "EnvironmentFile") == [servers]
    for name in ("lookout", "lookout-monitor", "lookout-backup"):
        assert values(units[name], "EnvironmentFile") == [monitors, servers]
        assert set(values(units[name], "User")).isdisjoint(values(units["lookout-server"], "User"))
        assert set(values(units[name], "StateDirectory")).isdisjoint(values(units["lookout-server"], "StateDirectory"))
    page = PAGE.read_text()
    assert all(f"`{path.removeprefix('-')}`" in page for path in (monitors, servers))


def test_the_backups_unit_makes_one_each_time_and_never_removes_the_newest(tmp_path: Path) -> None:
    unit = next(unit for unit in UNITS if unit.stem == TIMER.stem)
    config, backups = tmp_path / "lookout.toml", tmp_path / "lookout-backups"
    config.write_text('[store]\nurl = "sqlite:lookout.db"\n')
    with closing(open_writer(tmp_path / "lookout.db")) as writer:
        ledger = a_fresh_ledger(NOON)
        writer.write(documents_of(ledger), encode_state(ledger.state()).documents)
    backups.mkdir()
    old = [backups / f"lookout-201001{day:02}T030000Z.db" for day in range(1, 20)]
    mine = [backups / name for name in ("lookout-20100101T030000Z.db.gz", "before-the-upgrade.db")]
    for path in (*old, *mine):
        path.write_bytes(b"of another night")
    # Of a clock that was wrong: nobody knows how old it is, so it goes first.
    ahead = Path(shutil.copy(old[0], backups / "lookout-20990101T000000Z.db"))
    script = script_of(unit, "ExecStart", config).replace("%S/lookout-backups", str(backups))
    (keep,) = re.findall(r"--keep (\d+)", script)
    ran = subprocess.run(shlex.split(script), capture_output=True, text=True, timeout=TIME_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    made = [path for path in backups.iterdir() if path not in (*old, *mine, ahead)]
    assert len(made) == 1
    assert read_snapshot(made[0]).documents["live"].generated_at == NOON
    assert sorted(path for path in backups.iterdir() if path not in mine) == [*old[-(int(keep) - 1) :], *made]
    assert all(path.exists() for path in mine)


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="needs logrotate; on Debian: logrotate")
def test_logrotate_moves_the_observation_log_and_the_monitor_begins_another_with_what_is_known(tmp_path: Path) -> None:
    rotation, state, log = tmp_path / "rotation", tmp_path / "state", tmp_path / "seen.jsonl"
    example = (ROOT / "deploy/logrotate/lookout").read_text()
    user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    rotation.write_text(
        example.replace("su lookout lookout", f"su {user} {group}").replace("/var/lib/lookout/*", f"{tmp_path}/*")
    )
    rotation.chmod(0o644)  # or logrotate ignores it
    with closing(Recorder(tmp_path)) as recorder:
        recorder.record_to(log.name)
        recorder.record(Started(NOON))
        recorder.record(Compared(NOON, INDEXER, Gaps(1)))
        for day in (1, 2):
            until(lambda: log.exists() and log.read_bytes().count(b"\n") >= 2, "it is recorded")
            ran = said("logrotate", "--force", "--state", state, rotation)
            assert (ran.returncode, ran.stderr, log.exists()) == (0, "", False)
            recorder.record(Stopped(NOON + day))
    events: list[Event] = [Started(NOON + 2), Compared(NOON + 2, INDEXER, Gaps(1)), Stopped(NOON + 2)]
    assert log.read_bytes() == b"".join(map(format_event, events))
    assert {path.name for path in tmp_path.glob("seen*")} == {"seen.jsonl", "seen.jsonl.1", "seen.jsonl.2.gz"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the page does")
def test_the_files_of_the_page_can_be_read_by_those_who_need_them_and_by_nobody_else() -> None:
    """Made by the commands of the page, with numbers for its users."""
    monitor, server, stranger = 64_001, 64_002, 64_003
    found = re.findall(r"^install .*/etc/lookout(?:/\S+)?$", PAGE.read_text(), re.MULTILINE)
    assert len(found) == 4
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for command in found:
            made = command.replace("/etc/lookout", f"{folder}/etc").replace(" lookout ", f" {monitor} ")
            subprocess.run(shlex.split(made), check=True, timeout=TIME_S)

        def may_read(name: str, user: int, *groups: int) -> bool:
            as_user: Any = {"user": user, "group": user, "extra_groups": groups}
            ran = subprocess.run(["/bin/cat", f"{folder}/etc/{name}"], capture_output=True, check=False, **as_user)
            return ran.returncode == 0

        readable = {
            name: (may_read(name, monitor), may_read(name, server, monitor), may_read(name, stranger))
            for name in ("lookout.toml", "environment", "server.environment")
        }
    assert readable == {
        "lookout.toml": (True, True, False),
        "environment": (True, False, False),
        "server.environment": (True, True, False),
    }


def test_the_container_is_built_of_files_that_there_are() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", "")
    copied = [
        words[1:-1] for words in map(str.split, text.splitlines()) if words[:1] == ["COPY"] and "--from" not in words[1]
    ]
    sources = [source for words in copied for source in words]
    assert {"requirements/run.txt", "requirements/build.txt", "pyproject.toml", "src"} <= set(sources)
    assert [source for source in sources if not (ROOT / source).exists()] == []
    # What these two name is copied as well, or the wheel would lack it.
    for name in re.findall(r'(?:readme = |license-files = \[)"([^"]+)"', (ROOT / "pyproject.toml").read_text()):
        assert name in sources


def test_the_examples_of_the_pages_are_configurations_that_are_right(tmp_path: Path) -> None:
    watched = '[messaging]\nurl = "http://a.example"\n'
    watched += '[[chains]]\nid = 8453\nrpc = ["http://a.example", "http://b.example", "http://c.example"]\n'
    blocks = [
        block for page in (PAGE, SCALE) for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    assert len(blocks) == 5
    variables = {**os.environ, "MONITOR_PASSWORD": "x", "SERVER_PASSWORD": "x"}
    for number, block in enumerate(blocks):
        config = tmp_path / f"{number}.toml"
        config.write_text(watched + block)
        ran = subprocess.run([LOOKOUT, "check-config", "-c", config], env=variables, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr
