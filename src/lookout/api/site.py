"""The operator's own routes beside the API (V3)."""

import msgspec

from lookout.api.openapi import description
from lookout.api.replies import JSON, Resource, operators_own
from lookout.core.wire import schemas


def site(protocol: str) -> dict[str, Resource]:
    documents = {f"/schemas/{name}.json": schema for name, schema in schemas().items()}
    documents["/openapi.json"] = description(protocol)
    return {path: operators_own(JSON, msgspec.json.encode(document)) for path, document in documents.items()}
