"""Writes the documents' JSON Schemas and the OpenAPI description to docs/, from the code itself, and the description as
the server serves it, with a gap for the protocol."""

import os
import sys
from pathlib import Path

import msgspec

from lookout.config.settings import Settings
from lookout.documents.reports import build_schemas
from tools.openapi import describe_api

ROOT = Path(__file__).parent.parent


def build_files(root: Path = ROOT) -> dict[Path, bytes]:
    documents = {root / "docs" / "schemas" / f"{name}.json": schema for name, schema in build_schemas().items()}
    documents[root / "docs" / "openapi.json"] = describe_api(Settings().protocol)
    files = {path: msgspec.json.format(msgspec.json.encode(document)) + b"\n" for path, document in documents.items()}
    files[root / "src" / "lookout" / "server" / "openapi.json"] = msgspec.json.encode(describe_api("{protocol}"))
    return files


def main(root: Path = ROOT) -> int:
    for path, content in build_files(root).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
