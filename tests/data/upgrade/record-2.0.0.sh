#!/bin/sh
# Makes 2.0.0.sqlite.gz, the store that the real version 2.0.0 leaves behind: a simulated fortnight, a minute of a real
# monitor that compares lists, an alert that has begun, a message about it that was not accepted, and a note. To record it
# again, with git and the packages of the project: PYTHON=.venv/bin/python sh tests/data/upgrade/record-2.0.0.sh
set -eu
commit=00949ddcc5ad2b29a4c4cfea2cb5cc1d8ead0c08  # 2.0.0
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
python=$(realpath -s "${PYTHON:-$root/.venv/bin/python}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/source" "$folder/store"
git -C "$root" archive "$commit" | tar -x -C "$folder/source"
cd "$folder/source"
export PYTHONPATH="$folder/source/src:$folder/source/readers/python/src"
"$python" - "$folder/store" <<'PYTHON'
import asyncio, signal, sqlite3, subprocess, sys
from pathlib import Path
import aiohttp
import lookout
from lookout.app.demo import build_demo_store
from lookout.base.url import host_and_port
from lookout.demo.sim.server import serving, wall_clock

assert lookout.__version__ == "2.0.0"
folder = Path(sys.argv[1])
demo = build_demo_store(folder, "127.0.0.1:0", 7)
config = folder / "lookout.toml"
config.write_text(config.read_text() + """
[policy]
recheck_s = 1
jitter_s = 0.1
backoff_cap_s = 1
[alerts]
group_s = 0
[alerts.targets]
hook = "json://127.0.0.1:9/"
[[alerts.rules]]
for_s = 2
""")

def waiting() -> int:
    with sqlite3.connect(folder / "lookout.db") as store:
        return store.execute("SELECT count(*) FROM pieces WHERE name LIKE 'alerts/%'").fetchone()[0]

async def record() -> None:
    async with serving(*host_and_port(demo.upstreams), demo.world, wall_clock):
        monitor = subprocess.Popen([sys.executable, "-m", "lookout", "monitor", "-c", config])
        await asyncio.sleep(30)
        note = [sys.executable, "-m", "lookout", "note", "add", "Maintenance on Sunday", "-c", config]
        await (await asyncio.create_subprocess_exec(*note)).wait()
        fails = {"target": "squid/1", "fault": "status"}
        async with aiohttp.ClientSession() as http, http.post(f"http://{demo.upstreams}/control", json=fails) as answer:
            assert answer.status == 200
        for _ in range(600):
            await asyncio.sleep(0.1)
            if waiting():
                break
        await asyncio.sleep(5)
        monitor.send_signal(signal.SIGTERM)
        assert monitor.wait(30) == 0
        assert waiting()

asyncio.run(record())
PYTHON
gzip -9 -n -c "$folder/store/lookout.db" > "$root/tests/data/upgrade/2.0.0.sqlite.gz"
