"""The dashboard, held against Grafana's own schema, as its makers publish it for Python."""

import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARD: Final = Path(__file__).parent.parent.parent / "deploy" / "grafana" / "lookout.json"
# The Prometheus data source reads these; the schema of annotations knows nothing of any data source.
OF_DATA_SOURCE: Final = {f"annotations.list.0.{key}" for key in ("titleFormat", "textFormat")}


def problems(document: dict[str, Any]) -> set[str]:
    """What the schema does not know."""
    register_default_plugins()
    dashboard = Dashboard.from_json(document)
    known = dict(leaves(json.loads(JSONEncoder().encode(dashboard))))
    lost = {path for path, value in leaves(document) if path not in known or known[path] != value}
    return (lost - OF_DATA_SOURCE) | set(wrong_words(dashboard))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if children is None:
        yield path.removeprefix("."), value
    for key, child in children or ():
        yield from leaves(child, f"{path}.{key}")


def wrong_words(value: Any, path: str = "") -> Iterator[str]:
    """Where one of a few words has to be, and another one is: reading does not refuse it."""
    if isinstance(value, list | dict):
        for key, child in enumerate(value) if isinstance(value, list) else value.items():
            yield from wrong_words(child, f"{path}.{key}")
    elif hasattr(value, "to_json"):
        for name, hint in get_type_hints(type(value)).items():
            child = getattr(value, name)
            for allowed in (hint, *get_args(hint)):
                if isinstance(allowed, type) and issubclass(allowed, Enum) and child not in (None, *allowed):
                    yield f"{path}.{name} is {child}"
            yield from wrong_words(child, f"{path}.{name}")


def test_grafana_knows_every_field_of_the_dashboard_and_every_word_in_it() -> None:
    assert problems(json.loads(DASHBOARD.read_text())) == set()
