"""What a face says in English, read back as claims, each of which the rows have to bear out (C16)."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

Check = tuple[str, int | None]
TROUBLE: Final = ("unavailable", "degraded", "catching-up")
NOT_KNOWN: Final = ("unknown", "stale")
OWN_ROWS: Final = {"sending": ["broadcasters"], "balances": ["indexer", "hosted-indexer"], "proofs": ["ppoi"]}
STATUS_NAMES: Final = {"unavailable": "not answering", "degraded": "limited", "catching-up": "behind"}
BUCKET_MS: Final = 300_000
EFFECTS: Final = (
    "sending may fail",
    "sending may be slow",
    "balances may be late",
    "syncing may stop",
    "past transactions may be wrong",
    "proofs may be late",
    "proofs may be refused",
)
GENERAL: Final = (
    "No problem when last seen",
    "None of the watched services answers",
    "Nothing is known right now",
    "Nothing is watched",
    "No mainnet is watched",
)


class Facts(NamedTuple):
    """What the rows are worth, those included that the report should have: by check the status and the reason.

    ``networks`` are the names of the counted chains, ``titles`` those of the operator's own services, and ``effects``
    what their failure means. ``past`` has the characters of ended buckets and of the one that fills, which begins at
    ``to_at``.
    """

    rows: Mapping[Check, tuple[str, str | None]]
    networks: Mapping[int, str]
    titles: Mapping[str, str]
    effects: Mapping[str, str]
    past: Mapping[Check, str]
    to_at: int
    now: int
    age_ms: int

    def status(self, check: Check) -> str:
        return self.rows.get(check, ("unmonitored", None))[0]

    def watched(self) -> dict[Check, tuple[str, str | None]]:
        return {check: row for check, row in self.rows.items() if row[0] != "unmonitored"}

    def counted(self) -> dict[Check, tuple[str, str | None]]:
        return {check: row for check, row in self.watched().items() if check[1] is None or check[1] in self.networks}

    def rows_of(self, what: str, chain: int | None) -> list[Check]:
        """The rows that say how this is on a chain: those of the network itself, and messaging for sending."""
        services = OWN_ROWS.get(what) or [name for name, title in self.titles.items() if title == what]
        shared = [("messaging", None)] if what == "sending" else []
        own = [(service, chain) for service in services]
        if what == "proofs":
            own += [(each, chain) for each in OWN_ROWS["balances"] if self.has_gap((each, chain))]
        return [check for check in (*own, *shared) if self.status(check) != "unmonitored"]

    def has_gap(self, check: Check) -> bool:
        return self.rows.get(check) == ("degraded", "incomplete")

    def is_well(self, what: str, chain: int | None) -> bool:
        """C16: a row of its own is current, and none is anything else."""
        rows = self.rows_of(what, chain)
        return any(service != "messaging" for service, _ in rows) and all(
            self.status(each) == "current" for each in rows
        )

    def is_network_well(self, chain: int) -> bool:
        rows = [row[0] for check, row in self.counted().items() if check[1] == chain or check == ("messaging", None)]
        own = [row[0] for check, row in self.counted().items() if check[1] == chain]
        return "current" in own and all(status == "current" for status in rows)

    def evidence(self, effect: str, chain: int | None) -> list[Check]:
        """The rows that make this effect possible on a chain."""
        found = {
            "sending may fail": ("sending", ["unavailable"], None),
            "sending may be slow": ("sending", ["degraded", "catching-up"], None),
            "balances may be late": ("balances", TROUBLE, None),
            "syncing may stop": ("balances", TROUBLE, "incomplete"),
            "past transactions may be wrong": ("balances", TROUBLE, "inconsistent"),
            "proofs may be late": ("proofs", TROUBLE, None),
            "proofs may be refused": ("proofs", TROUBLE, "inconsistent"),
        }[effect]
        what, statuses, reason = found
        return [
            check
            for check in self.rows_of(what, chain)
            if self.status(check) in statuses and reason in (None, self.rows[check][1])
        ]


def false_claims(line: str, facts: Facts) -> list[str]:
    """The sentences of a line that its rows do not bear out, and those that nobody knows."""
    claims = list(_sentences(line))
    return [f"{claim}: {why}" for claim in claims if (why := _refute(claim, claims, facts))]


def _sentences(line: str) -> Iterator[str]:
    for sentence in line.split(". "):
        head, _, rest = sentence.partition("Also: ")
        yield from [head] if head else []
        yield from rest.split("; ") if rest else []


def _refute(claim: str, claims: list[str], facts: Facts) -> str:
    lowered = claim[0].lower() + claim[1:]
    if claim in GENERAL:
        return _refute_general(claim, facts)
    if match := re.fullmatch(r"No new report (?:for 100 s|since (.+)): this is the monitor, not the networks", claim):
        is_since = match[1] is None or _instant(match[1], facts) == (facts.now - facts.age_ms) // 60_000 * 60_000
        return "" if facts.age_ms >= 100_000 and is_since else "there is one"
    if match := re.fullmatch(r"Nothing is known now: the last reading is from (.+)", claim):
        return "" if not _known(facts) else "something is known"
    if re.fullmatch(r"\d+ more problems?", claim):
        return "" if len(claims) > 4 else "there are not so many"
    if re.match(r"(Since|The first since) ", claim):
        return _refute_since(claim, claims[0], facts)
    if re.fullmatch(r"No problem seen on the other networks?", claim):
        named = set(_chains_of(claims[0], facts))
        others = [chain for chain in facts.networks if chain not in named]
        return "" if others and all(map(facts.is_network_well, others)) else "not all of them are current"
    if claim.startswith("No problem seen with "):
        return _refute_well(claim.removeprefix("No problem seen with "), facts)
    if match := re.fullmatch(rf"nothing is known about (.+?)({_where(facts)})?", lowered):
        whats = re.split(r", | and ", match[1])
        return _refute_places(match[2], facts, lambda chain: all(_is_unknown(what, chain, facts) for what in whats))
    for effect in EFFECTS:
        if match := re.fullmatch(rf"{effect}({_where(facts)})?", lowered):
            return _refute_places(match[1], facts, lambda chain, effect=effect: bool(facts.evidence(effect, chain)))
    if match := re.fullmatch(rf"({_any(facts.titles.values())}): (.+?)({_where(facts)})?", claim):
        title, said = match[1], match[2]
        return _refute_places(match[3], facts, lambda chain: bool(_own_evidence(title, said, chain, facts)))
    return "nobody knows this sentence"


def _refute_general(claim: str, facts: Facts) -> str:
    counted = facts.counted()
    wrong = {
        "No problem when last seen": not _known(facts) and any(row[0] == "current" for row in counted.values()),
        "None of the watched services answers": len(facts.watched()) > 1
        and all(
            row in (("unavailable", "unreachable"), ("unknown", "unreachable")) for row in facts.watched().values()
        ),
        "Nothing is known right now": not _known(facts)
        and not any(facts.is_well(what, chain) for what in _whats(facts) for chain in (*facts.networks, None)),
        "Nothing is watched": not facts.watched() or set(facts.watched()) == {("messaging", None)},
        "No mainnet is watched": set(counted) <= {("messaging", None)} and not _known(facts),
    }
    return "" if wrong[claim] else "the rows say otherwise"


def _whats(facts: Facts) -> list[str]:
    return [*OWN_ROWS, *facts.titles.values()]


def _known(facts: Facts) -> bool:
    """Whether some trouble is known."""
    return any(row[0] in TROUBLE for row in facts.counted().values())


def _is_unknown(what: str, chain: int | None, facts: Facts) -> bool:
    statuses = [facts.status(check) for check in facts.rows_of(what, chain)]
    if what not in OWN_ROWS:  # one of those that have this title
        return any(status in NOT_KNOWN for status in statuses)
    return any(status in NOT_KNOWN for status in statuses) and not any(status in TROUBLE for status in statuses)


def _own_evidence(title: str, said: str, chain: int | None, facts: Facts) -> list[Check]:
    return [
        (service, chain)
        for service, own in facts.titles.items()
        if own == title
        and facts.status((service, chain)) in TROUBLE
        and said == (facts.effects.get(service) or STATUS_NAMES[facts.status((service, chain))])
    ]


def _refute_well(rest: str, facts: Facts) -> str:
    group = re.compile(
        rf"((?:{_any(_whats(facts))})(?:(?:, | and )(?:{_any(_whats(facts))}))*)({_where(facts)})?(?:, |$)"
    )
    at = 0
    while at < len(rest):
        match = group.match(rest, at)
        if match is None:
            return "nobody knows these words"
        whats = re.split(r", | and ", match[1])
        why = _refute_places(
            match[2], facts, lambda chain, whats=whats: all(facts.is_well(what, chain) for what in whats)
        )
        if why:
            return why
        at = match.end()
    return ""


def _refute_places(where: str | None, facts: Facts, holds: object) -> str:
    """Why it does not hold there: on all, on so many, on those that are named, or where there is no network."""
    assert callable(holds)
    true_on = [chain for chain in facts.networks if holds(chain)]
    if not where:
        return "" if holds(None) else "no row without a chain says so"
    words = where.removeprefix(" on ")
    if counted := re.fullmatch(r"(?:all (\d+)|(\d+) of (\d+)) networks", words):
        number, of = (int(counted[1]),) * 2 if counted[1] else (int(counted[2]), int(counted[3]))
        return "" if of == len(facts.networks) and len(true_on) >= number else f"it is so on {true_on}"
    named = set(_chains_of(where, facts))
    return "" if named <= set(true_on) else f"it is so on {true_on}"


def _chains_of(sentence: str, facts: Facts) -> Collection[int]:
    match = re.search(rf"{_where(facts)}$", sentence)
    if match is None:
        return []
    if "networks" in match[0]:
        return list(facts.networks) if " all " in match[0] else []
    names = re.split(r", | and ", match[0].removeprefix(" on "))
    return [chain for chain, name in facts.networks.items() if name in names]


def _refute_since(claim: str, subject: str, facts: Facts) -> str:
    """Some row of what it is about has been bad from then on; before that it was current, if it is said to be known."""
    match = re.fullmatch(r"(Since about|Since|The first since about) (.+?)( or earlier)?, no end announced", claim)
    if match is None:
        return "nobody knows this sentence"
    at = _instant(match[2], facts)
    index = (at - facts.to_at) // BUCKET_MS - 1  # from the end: -1 is the bucket that fills
    for check in _subject_rows(subject, facts):
        past = facts.past.get(check, "")
        before, run, filling = past[:index], past[index:-1], past[-1:]
        is_bad = bool(run or filling) and all(character in "udk" for character in run)
        has_begun = before.endswith("c") or (not run and filling == "c")
        if is_bad and (has_begun or match[1] != "Since about") and not (run and filling == "c"):
            return ""
    return "no row has been bad since then"


def _subject_rows(subject: str, facts: Facts) -> Iterator[Check]:
    lowered = subject[0].lower() + subject[1:]
    for chain in (*facts.networks, None):
        for effect in EFFECTS:
            if lowered.startswith(effect):
                yield from facts.evidence(effect, chain)
        for service, title in facts.titles.items():
            if subject.startswith(f"{title}: ") and facts.status((service, chain)) in TROUBLE:
                yield service, chain


def _instant(words: str, facts: Facts) -> int:
    """Of today, or of the day that is named."""
    now = datetime.fromtimestamp(facts.now / 1000, UTC)
    if match := re.fullmatch(r"(\d\d):(\d\d) UTC", words):
        found = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0)
    else:
        found = datetime.strptime(f"{now.year} {words}", "%Y %d %b %H:%M UTC").replace(tzinfo=UTC)
    return round(found.timestamp() * 1000)


def _where(facts: Facts) -> str:
    names = _any(facts.networks.values())
    return rf" on (?:all \d+ networks|\d+ of \d+ networks|(?:{names})(?:(?:, | and )(?:{names}))*)"


def _any(words: Iterable[str]) -> str:
    listed = sorted(set(words), key=len, reverse=True)
    return "|".join(map(re.escape, listed)) or r"(?!)"
