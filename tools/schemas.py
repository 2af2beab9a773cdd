"""Writes the documents' JSON Schemas to docs/schemas/, from the types that make the documents."""

import sys
from pathlib import Path

import msgspec

from lookout.core.wire import schemas

FOLDER = Path(__file__).parent.parent / "docs" / "schemas"


def schema_files() -> dict[Path, bytes]:
    return {
        FOLDER / f"{name}.json": msgspec.json.format(msgspec.json.encode(schema)) + b"\n"
        for name, schema in schemas().items()
    }


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, content in schema_files().items():
        path.write_bytes(content)
        print(f"wrote {path.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
