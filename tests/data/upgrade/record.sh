#!/bin/sh
# Makes 0.1.0.sqlite.gz, the store that the real version 0.1.0 leaves behind: a simulated fortnight, a minute of a real
# monitor, an alert that has begun, and a message about it that nobody has accepted. To record it again, with git and
# the packages of that time: sh tests/data/upgrade/record.sh
set -eu
commit=b5ff00c181b7ba72e783b0d48f27c8f285de7f64  # the last of 0.1.0
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/source" "$folder/store"
git -C "$root" archive "$commit" | tar -x -C "$folder/source"
cd "$folder/source"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --require-hashes --only-binary :all: -r requirements/run.txt -r requirements/build.txt
"$folder/venv/bin/pip" install -q --require-hashes --only-binary :all: -r requirements/alerts.txt
"$folder/venv/bin/pip" install -q --no-deps --no-build-isolation .
"$folder/venv/bin/python" - "$folder/store" <<'PYTHON'
import asyncio, signal, sqlite3, subprocess, sys
from pathlib import Path
import aiohttp
from lookout.host_port import host_and_port
from lookout.sim.server import serving, wall_clock
from lookout.wiring.demo import live_through_the_past

folder = Path(sys.argv[1])
lived = live_through_the_past(folder, "127.0.0.1:0", 7, lambda done: None)
config = folder / "lookout.toml"
config.write_text(config.read_text() + """
[policy]
recheck_s = 0.5
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
    async with serving(*host_and_port(lived.upstreams), lived.world, wall_clock):
        monitor = subprocess.Popen([Path(sys.executable).with_name("lookout"), "monitor", "-c", config])
        await asyncio.sleep(30)
        fails = {"target": "squid/1", "fault": "status"}
        async with aiohttp.ClientSession() as http, http.post(f"http://{lived.upstreams}/control", json=fails) as answer:
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
gzip -9 -n -c "$folder/store/lookout.db" > "$root/tests/data/upgrade/0.1.0.sqlite.gz"
