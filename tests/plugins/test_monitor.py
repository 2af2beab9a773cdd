"""A monitor one of whose plug-ins raises: its row has failed, and all other rows are as ever."""

from pathlib import Path
from typing import Final

from tests.commands import a_command, lookout, said
from tests.integration.fast import a_config, a_world
from tests.plugins.packages import install, path_with, with_parse, with_request

CHAIN: Final = """
[[chains]]
id = 1
rpc = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"]
"""
SERVICE: Final = """
[[services]]
name = "tide"
[[services.checks]]
kind = "tidal"
chain = 1
url = "{base}/json/1"
"""


async def test_a_plug_in_that_raises_fails_its_own_row_alone(tmp_path: Path) -> None:
    install(tmp_path, with_parse("raise SystemExit('hunter' + str(2))"))
    async with a_world(tmp_path) as world:
        (tmp_path / "lookout.toml").write_text(
            a_config(world.base, failures_for_unavailable=2) + SERVICE.format(base=world.base)
        )
        with a_command(tmp_path, "monitor", "-c", "lookout.toml", **path_with(tmp_path)) as process:
            await world.until(lambda: world.status_of("tide", 1) == "unavailable/unreachable", "its row has failed")
            await world.until(lambda: world.status_of("indexer", 1) == "current/synced", "another row is current")
            assert process.poll() is None
            text = said(tmp_path)
    assert text.count("a plug-in did something wrong") == 1
    assert "lookout_tidal.py" in text
    assert "hunter2" not in text


def test_lookout_probe_shows_where_a_plug_in_raises_beside_its_result(tmp_path: Path) -> None:
    install(tmp_path, with_request("raise ValueError('hunter' + str(2))"))
    (tmp_path / "lookout.toml").write_text(CHAIN + SERVICE.format(base="http://127.0.0.1:4"))
    probed = lookout(tmp_path, "probe", "-c", "lookout.toml", environment=path_with(tmp_path))
    assert "lookout_tidal.py" not in probed.stdout
    assert "plug_in: the plug-in of this kind did something wrong (raised ValueError)" in probed.stdout
    assert "lookout_tidal.py" in probed.stderr
    assert "hunter2" not in probed.stdout + probed.stderr
