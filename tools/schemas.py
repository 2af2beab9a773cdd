"""Writes the documents' JSON Schemas to docs/schemas/ and the OpenAPI description to docs/, from the code itself."""

import sys
from pathlib import Path

import msgspec

from lookout.config.settings import Settings
from lookout.documents.reports import schemas
from lookout.server.openapi import description

DOCS = Path(__file__).parent.parent / "docs"


def schema_files() -> dict[Path, bytes]:
    documents = {DOCS / "schemas" / f"{name}.json": schema for name, schema in schemas().items()}
    documents[DOCS / "openapi.json"] = description(Settings().protocol)
    return {path: msgspec.json.format(msgspec.json.encode(document)) + b"\n" for path, document in documents.items()}


def main() -> int:
    for path, content in schema_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"wrote {path.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
