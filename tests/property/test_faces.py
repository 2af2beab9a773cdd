"""No face says more than its rows, whatever they are (C16): both readers say the same, and an oracle reads it back."""

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from lookout.base.instants import format_instant, format_second
from lookout_reader import (
    About,
    Clocks,
    History,
    LiveReport,
    Overview,
    effect_word,
    effective_status,
    headline_of,
    overview_of,
    parse_about,
    parse_history,
    parse_report,
)
from tests.builders import NOON, SECOND
from tests.nodejs import find_node
from tests.oracles.faces import BUCKET_MS, EFFECTS, Facts, false_claims

Json = dict[str, Any]

DOCUMENTS: Final = 3_000
SCRIPT: Final = Path(__file__).with_name("faces.mjs")
NAMES: Final = {1: "Ethereum", 42161: "Arbitrum One", 137: "Polygon", 56: "BNB Smart Chain", 8453: "Base"}
TEST_NETWORK: Final = 11155111
PER_CHAIN: Final = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
OWN: Final = {
    "bundler": ("Bundlers", "sending may fail on some devices."),
    "relayer": ("Relay", ""),
    "other": ("Relay", ""),
}
BUCKETS: Final = 12
WORDS: Final = {
    "send": {"fail": "sending may fail", "slow": "sending may be slow"},
    "balances": {"late": EFFECTS[2], "stop": EFFECTS[3], "wrong": EFFECTS[4]},
    "proofs": {"late": EFFECTS[5], "refused": EFFECTS[6]},
}
KINDS: Final = {
    "current": ("current", "synced"),
    "behind": ("catching-up", "behind"),
    "partial": ("degraded", "partial-coverage"),
    "gap": ("degraded", "incomplete"),
    "extra": ("degraded", "inconsistent"),
    "down": ("unavailable", "unreachable"),
    "unreached": ("unknown", "unreachable"),
    "unknown": ("unknown", "incompatible-reference"),
    "unwatched": ("unmonitored", "not-configured"),
    "tomorrow": ("paused", "moon-phase"),
    "expired": ("current", "synced"),
}


def make_documents(chance: Random) -> tuple[Json, Json, Json]:
    """A report, its history and the description of a deployment, of which much, little or nothing is well."""
    chains = chance.sample([*NAMES], chance.randrange(5)) + [TEST_NETWORK] * chance.randrange(2)
    own = chance.sample([*OWN], chance.choice((0, 0, 1, 3)))
    checks: list[tuple[str, int | None]] = [
        ("messaging", None),
        *((service, chain) for service in PER_CHAIN for chain in chains),
        *((service, chain) for service in own for chain in (chance.choice(([None], chains)) or [None])),
    ]
    mostly = chance.choice(("current", "current", "down", "unwatched", "unknown", "expired", "unreached"))
    share = chance.choice((0.0, 0.05, 0.3, 1.0))
    age_ms = chance.choice((5, 20, 99, 101, 130, 1000)) * SECOND
    rows: list[Json] = []
    past: list[Json] = []
    for service, chain in checks:
        if chance.random() < 0.02:
            continue
        kind = chance.choice([*KINDS]) if chance.random() < share else mostly
        rows.append(_row(service, chain, kind, NOON - age_ms - chance.randrange(20 * SECOND)))
        likely = {"current": "c", "down": "u", "behind": "k"}.get(kind, "d")
        run = chance.randrange(BUCKETS)
        buckets = "".join(chance.choice("ccccudk?.-") for _ in range(BUCKETS - run)) + likely * run
        past.append({"service": service, "chainId": chain, "buckets": buckets, "uptime": {}})
    to_at = NOON // BUCKET_MS * BUCKET_MS
    report = {"schemaVersion": 1, "generatedAt": format_instant(NOON - age_ms), "checks": rows}
    history = {
        "schemaVersion": 1,
        "bucketSeconds": BUCKET_MS // 1000,
        "from": format_second(to_at - (BUCKETS - 1) * BUCKET_MS),
        "to": format_second(to_at),
        "rows": past,
    }
    about = {
        "chains": [{"id": chain, "name": NAMES.get(chain, "Sepolia")} for chain in chains],
        "services": [{"name": name, "title": OWN[name][0], "effect": OWN[name][1]} for name in own],
        "showUnmonitored": chance.random() < 0.7,
    }
    return report, history, about


def _row(service: str, chain: int | None, kind: str, seen_at: int) -> Json:
    status, reason = KINDS[kind]
    seen_at -= 160 * SECOND if kind == "expired" else 0
    known = status not in ("unknown", "unmonitored")
    return {
        "service": service,
        "chainId": chain,
        "status": status,
        "reason": reason,
        "observedAt": None if status == "unmonitored" else format_instant(seen_at),
        "lastSuccessAt": None,
        "expiresAt": format_instant(seen_at + 150 * SECOND) if known else None,
        "metrics": {},
    }


def gather_facts(report: Json, history: Json, about: Json) -> Facts:
    parsed = parse_report(json.dumps(report))
    assert isinstance(parsed, LiveReport)
    rows: dict[Any, tuple[str, str | None]] = {
        (row["service"], row["chainId"]): (effective_status(read, Clocks(NOON)), row["reason"])
        for row, read in zip(report["checks"], parsed.rows, strict=True)
    }
    listed = [chain["id"] for chain in about["chains"]]
    networks = {chain: NAMES[chain] for chain in listed if chain != TEST_NETWORK}
    expected = [("messaging", None), *((service, chain) for service in PER_CHAIN for chain in networks)]
    rows = dict.fromkeys(expected, ("unknown", None)) | rows
    return Facts(
        rows=rows,
        networks=networks,
        titles={service["name"]: service["title"] for service in about["services"]},
        effects={service["name"]: service["effect"].rstrip(".") for service in about["services"] if service["effect"]},
        past={(row["service"], row["chainId"]): row["buckets"] for row in history["rows"]},
        to_at=NOON // BUCKET_MS * BUCKET_MS,
        now=NOON,
        age_ms=NOON - round(parsed.generated_at or 0),
    )


def describe(overview: Overview) -> Json:
    """What a face has to show, as the script writes it too."""
    said = headline_of(overview)
    return {
        "status": overview.status,
        "line": said.line,
        "networks": [
            [network.chain_id, network.status, state.activity or state.service, state.status, state.effect, word]
            for network in overview.networks
            for state in network.activities
            for word in [effect_word(overview, state)]
        ],
    }


def refute_networks(told: Json, facts: Facts) -> list[str]:
    """A line of a network that its rows do not bear out."""
    wrong = []
    for chain, network_status, activity, status, effect, word in told["networks"]:
        what = {"send": "sending"}.get(activity, activity) if activity in WORDS else facts.titles[activity]
        own = [activity] if activity not in WORDS else None
        rows = [(own[0], chain)] if own else facts.rows_of(what, chain)
        statuses = [facts.status(check) for check in rows]
        is_right = {
            "well": status == "current" and (facts.is_well(what, chain) if own is None else statuses == ["current"]),
            "unknown": any(each in ("unknown", "stale") for each in statuses),
            "unwatched": all(each in ("unmonitored", "current") for each in statuses),
        }.get(effect)
        if is_right is None:
            is_right = status in statuses if own else bool(facts.evidence(WORDS[activity][effect], chain))
        if not is_right or (network_status == "current" and status not in ("current", "unmonitored")):
            wrong.append(f"{activity} on {chain}: {word}")
    return wrong


@pytest.mark.clause("C11", "C16")
def test_no_face_says_more_than_its_rows() -> None:
    documents = [make_documents(Random(seed)) for seed in range(DOCUMENTS)]
    lines = "\n".join(json.dumps(each) for each in documents)
    ran = subprocess.run(
        [find_node(), str(SCRIPT), str(NOON)], input=lines, capture_output=True, text=True, check=True, timeout=120
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    for seed, ((report, history, about), in_javascript) in enumerate(zip(documents, found, strict=True)):
        read, past, described = (
            parse(json.dumps(each))
            for parse, each in ((parse_report, report), (parse_history, history), (parse_about, about))
        )
        assert isinstance(read, LiveReport)
        assert isinstance(past, History)
        assert isinstance(described, About)
        overview = overview_of(read, Clocks(NOON), about=described, history=past)
        told, facts = describe(overview), gather_facts(report, history, about)
        assert told == in_javascript, seed
        assert false_claims(told["line"], facts) + refute_networks(told, facts) == [], f"{seed}: {told['line']}"
        if overview.healthy:
            assert any(check[1] in facts.networks and row[0] == "current" for check, row in facts.rows.items()), seed
            assert {row[0] for row in facts.counted().values()} == {"current"}, seed
