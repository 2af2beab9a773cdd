"""The example package, as a wheel, beside Lookout's own wheel in an environment that has neither of their sources."""

import asyncio
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any, Final

import pytest

from lookout.protocols import api
from tests.cases import text_of
from tests.commands import meanwhile, said
from tests.contract.protocols.upstreams import answering
from tests.integration.fast import a_world
from tests.integration.served import LIVE, a_free_port
from tests.integration.whole_service import answer
from tests.wait import until_async

pytestmark = pytest.mark.long

ROOT: Final = Path(__file__).parent.parent.parent
EXAMPLE: Final = Path(__file__).parent / "example"
STATUS: Final = b'{"pools":{"north":{"block":17}}}'
CONFIG: Final = text_of("settings/plugin-example.toml")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with these wheels. What Lookout needs besides is that of the tests."""
    folder = tmp_path_factory.mktemp("clean")
    for source in (ROOT, ROOT / "readers" / "python", EXAMPLE):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=source)
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        *(folder / "dist").iterdir(),
    )
    (Path(packages) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def run(*command: str | Path, cwd: Path = ROOT, exit_code: int = 0) -> str:
    # Without the path by which the tests find the sources.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


def test_the_page_about_plug_ins_shows_it() -> None:
    page, module = (ROOT / "CONTRIBUTING.md").read_text(), (EXAMPLE / "lookout_tidepool.py").read_text()
    assert module.partition("\n\n")[2] in page
    assert 'tidepool = "lookout_tidepool:TIDEPOOL"' in page


def test_the_page_about_plug_ins_names_all_that_stays() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in api.__all__ if f"`{name}`" not in page] == []


def test_the_environment_has_no_sources(programs: Path) -> None:
    where = run(programs / "python", "-c", "import lookout, lookout_tidepool as t; print(lookout.__file__, t.__file__)")
    assert [Path(each).is_relative_to(programs.parent) for each in where.split()] == [True, True]


def test_the_examples_own_tests_pass_there(programs: Path) -> None:
    own = ("-p", "no:cacheprovider", "--rootdir", EXAMPLE, "-c", os.devnull, EXAMPLE / "tests")
    assert "1 passed" in run(programs / "python", "-m", "pytest", "-q", *own)


async def test_its_row_is_shown(programs: Path, tmp_path: Path) -> None:
    async with a_world(tmp_path) as world, answering(lambda _: (200, STATUS)) as (url, asked):
        port = a_free_port()
        (tmp_path / "lookout.toml").write_text(CONFIG.format(port=port, base=world.base, url=url))
        with meanwhile(
            tmp_path, "env", "-u", "PYTHONPATH", programs / "lookout", "run", "-c", "lookout.toml"
        ) as process:

            async def position() -> Any:
                assert process.poll() is None, said(tmp_path)
                live = await answer(world.http, f"http://127.0.0.1:{port}{LIVE}")
                rows = [] if live is None else live["checks"]
                return [row["metrics"].get("position") for row in rows if row["service"] == "tidepool"] == [17]

            await until_async(position, "the row of the example is published")
        assert {each.target for each in asked} == {"/status"}


async def test_its_configuration_is_checked_and_it_is_probed(programs: Path, tmp_path: Path) -> None:
    config = tmp_path / "lookout.toml"
    async with a_world(tmp_path) as world, answering(lambda _: (200, STATUS)) as (url, _):
        config.write_text(CONFIG.format(port=1, base=world.base, url=url))
        assert await asyncio.to_thread(run, programs / "lookout", "check-config", "-c", config) == "ok\n"
        probed = await asyncio.to_thread(run, programs / "lookout", "probe", "-c", config, exit_code=1)
        assert re.search(r"behind: \d+ blocks below the head \(17 of ", probed)
