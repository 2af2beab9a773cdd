"""What is read at the start, since processes are started often and somebody waits for each."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        pytest.param("lookout_reader", "urllib.request", id="the reader's rules need no network"),
        pytest.param("lookout.app.server", "lookout_reader.poller", id="a server polls nobody"),
        pytest.param("lookout.app.monitor", "aiohttp", id="the monitor asks without the simulation's HTTP library"),
        pytest.param("lookout.cli.commands", "asyncio", id="a server reads its configuration without an event loop"),
        pytest.param("lookout.app.server", "cryptography", id="a server checks no signatures"),
        pytest.param("lookout.app.server", "rich", id="a server draws nothing"),
        pytest.param("lookout.app.server", "prometheus_client", id="the first answer waits for no metrics"),
        pytest.param("lookout.app.monitor", "rich", id="nor does a monitor"),
    ],
)
def test_a_part_does_not_read_what_it_never_uses(module: str, unneeded: str) -> None:
    program = f"import sys, {module}; print({unneeded!r} in sys.modules)"
    read = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert read.stdout == "False\n"


def test_the_list_of_all_commands_needs_none_of_them() -> None:
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); import lookout.__main__"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "  check-config  List everything" in shown.stdout
    loaded = {name for name in shown.stderr.split() if name.startswith("lookout")}
    assert loaded == {"lookout", "lookout.cli"}
