"""Packs the JavaScript reader as npm does, the same bytes each time: `python -m tools.npm_package FOLDER`.

With it go the cases that both readers are tested with, so that its tests run from the package as well.
"""

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.statuses import READER

_ALWAYS: Final = ("package.json", "README.md", "LICENSE")
_VECTORS: Final = READER.parent.parent / "tests" / "data" / "vectors"
_MADE_AT: Final = 499_162_500  # what npm writes too, for the same reason


def make_package() -> tuple[str, bytes]:
    """The name and the bytes of the tarball."""
    manifest = json.loads((READER / "package.json").read_text(encoding="utf-8"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, path in sorted(_files(manifest["files"])):
            content = path.read_bytes()
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mtime, entry.mode = len(content), _MADE_AT, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return f"{manifest['name']}-{manifest['version']}.tgz", gzip.compress(packed.getvalue(), mtime=0)


def _files(listed: list[str]) -> Iterator[tuple[str, Path]]:
    for entry in (*_ALWAYS, *listed):
        found = READER / entry
        for path in found.rglob("*") if found.is_dir() else (found,):
            if path.is_file():
                yield path.relative_to(READER).as_posix(), path
    for path in (*_VECTORS.glob("reader/*.json"), *_VECTORS.glob("replay-*.expected.json")):
        yield f"test/vectors/{path.relative_to(_VECTORS).as_posix()}", path


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    name, content = make_package()
    path = Path(sys.argv[1]) / name
    path.write_bytes(content)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
