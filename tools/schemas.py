"""Writes the documents' JSON Schemas to docs/schemas/ and the OpenAPI description to docs/, from the code itself."""

import os
import sys
from pathlib import Path

import msgspec

from lookout.config.settings import Settings
from lookout.documents.reports import schemas
from lookout.server.openapi import description

DOCS = Path(__file__).parent.parent / "docs"


def schema_files(folder: Path = DOCS) -> dict[Path, bytes]:
    documents = {folder / "schemas" / f"{name}.json": schema for name, schema in schemas().items()}
    documents[folder / "openapi.json"] = description(Settings().protocol)
    return {path: msgspec.json.format(msgspec.json.encode(document)) + b"\n" for path, document in documents.items()}


def main(folder: Path = DOCS) -> int:
    for path, content in schema_files(folder).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
