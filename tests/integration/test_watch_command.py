"""``lookout watch`` where its output is no terminal."""

import os
import subprocess
from pathlib import Path

from tests.commands import LOOKOUT
from tests.integration.served import a_ledger, a_server, publish

CELLS = 48


def test_into_a_pipe_all_columns_are_written_and_no_line_is_broken(tmp_path: Path) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
        ended = subprocess.run(
            [LOOKOUT, "watch", "--once", server.base], capture_output=True, env=environment, timeout=100, check=True
        )
    lines = ended.stdout.decode().splitlines()
    (header,) = (line for line in lines if line.startswith("check "))
    assert header.rstrip().endswith("last 24 hours")
    strip_at = header.index("last 24 hours")
    (indexer,) = (line for line in lines if line.startswith("indexer chain 1 "))
    assert len(indexer) == strip_at + CELLS
    assert any(line.endswith("The history does not tell what is up now.") and "official" in line for line in lines)
