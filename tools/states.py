"""Writes the documents of every state, as a monitor makes them, for those who test what they build with the readers."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from lookout.core.model import Check, Metrics, Report, Row, unmonitored
from lookout.documents.reports import live_document
from lookout_reader import parse_instant
from lookout_reader.statuses import KNOWN_STATUSES
from lookout_reader.words import REASON_TEXTS
from tools.examples import build_history_example

READERS: Final = Path(__file__).parent.parent / "readers"
MADE_AT: Final = 1_794_744_000_000
_LIFETIME_MS: Final = 150_000
_OTHERS: Final = (
    (Check("messaging", None), Metrics(peers=14)),
    (Check("ppoi", 1), Metrics(position=184_213, head=184_213)),
    (Check("broadcasters", 1), Metrics(responding=5, monitored=5)),
    (Check("hosted-indexer", 1), Metrics(position=23_000_000, head=23_000_000)),
)
_INDEXER: Final = Check("indexer", 1)
_REASONS: Final = {"current": "synced", "catching-up": "behind", "degraded": "behind", "unavailable": "unreachable"}
# A reason that the monitor gives with another status than degraded.
_STATUSES: Final = {
    "synced": "current",
    "responding": "current",
    "behind": "catching-up",
    "unreachable": "unavailable",
    "not-configured": "unmonitored",
    "no-observation": "unknown",
    "incompatible-reference": "unknown",
    "not-everywhere": "unknown",
}


def build_states() -> dict[str, Any]:
    """In all but two of them, the indexer of chain 1 is what differs."""
    states = {"fine": _document("current", "synced")}
    states |= {word: _document(word, _REASONS[word]) for word in KNOWN_STATUSES if word != "current"}
    states["unknown"] = _document("unknown", "no-observation")
    states["unmonitored"] = _document("unmonitored", "not-configured")
    states |= {f"reason:{reason}": _document(_STATUSES.get(reason, "degraded"), reason) for reason in REASON_TEXTS}
    states["stale"] = _document("current", "synced", age_ms=200_000)
    states["dead-monitor"] = _document("current", "synced", made_at=MADE_AT - 600_000)
    states["new-status"] = _replace(states["degraded"], status="on-fire")
    states["new-reason"] = _replace(states["degraded"], reason="moon-phase")
    places = {"views": 3, "agreeing": 2}
    states["dissent"] = _replace(states["fine"], metrics=places)
    states["reason:not-everywhere"] = _replace(states["reason:not-everywhere"], metrics={"views": 2, "agreeing": 0})
    states["other-version"] = {**states["fine"], "schemaVersion": 2}
    return states


def _document(status: Any, reason: Any, age_ms: int = 0, made_at: int = MADE_AT) -> dict[str, Any]:
    others = tuple(_seen(check, "current", "synced", made_at - 4_000, metrics) for check, metrics in _OTHERS)
    row = (
        unmonitored(_INDEXER) if status == "unmonitored" else _seen(_INDEXER, status, reason, made_at - 4_000 - age_ms)
    )
    document: dict[str, Any] = json.loads(live_document(Report(made_at, (*others, row))).body)
    return document


def _seen(check: Check, status: Any, reason: Any, at: int, metrics: Metrics = Metrics()) -> Row:  # noqa: B008 - frozen
    expires_at = None if status == "unknown" else at + _LIFETIME_MS
    return Row(check, status, reason, at, at, expires_at, metrics)


def _replace(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """With what no monitor of today writes in the indexer's row."""
    *others, indexer = document["checks"]
    return {**document, "checks": [*others, {**indexer, **fields}]}


def _find_changes(fine: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """What differs from "fine": fields, the indexer's row (the last one), and how long before it was made."""
    age_ms = MADE_AT - (parse_instant(document["generatedAt"]) or 0)
    if age_ms:
        return {"ageMs": age_ms}
    changes = {key: value for key, value in document.items() if key != "checks" and value != fine[key]}
    row = document["checks"][-1]
    return changes if row == fine["checks"][-1] else {**changes, "indexer": row}


def build_files() -> dict[Path, str]:
    history = json.loads(build_history_example().body)
    states = build_states()
    made = {
        "madeAt": MADE_AT,
        "fine": states["fine"],
        "states": {state: _find_changes(states["fine"], document) for state, document in states.items()},
        "history": history,
    }
    text = json.dumps(made, indent=1)
    head = "// Written by `make schemas`, from tools/states.py: documents as a monitor makes them."
    return {
        READERS / "js" / "src" / "states.js": f"{head}\nexport default {text};\n",
        READERS / "python" / "src" / "lookout_reader" / "states.json": f"{text}\n",
    }


def main() -> int:
    for path, content in build_files().items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(f"wrote {os.path.relpath(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
