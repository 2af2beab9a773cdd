"""What may be said of an indexer's list, and what has to be, by one who sees both the chain and what the indexer holds.

It knows nothing of how the list is compared, only what was true when (S17 to S19)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

MINUTE = 60_000
TAIL_MS = 10 * MINUTE
HEAL_MS = 10 * MINUTE
PROVE_MS = 75 * MINUTE
"""A transaction that left the chain after it was proved is noticed with the next proof."""
LOOK_MS = 6 * MINUTE
"""The longest time between a proof and what is said."""
LATEST_MS = 2 * MINUTE
"""How late a list may be in these worlds: so long it lacks what the indexer has again."""


class Instant(NamedTuple):
    """What is so now."""

    at: int
    final: int
    position: int
    told_position: int | None
    """What the indexer said last."""
    calm_since: int
    """Since when nothing hindered the comparison; what is promised is promised from then on."""
    swept_at: int | None
    """When every final block had been compared once."""


class Truth:
    """Where each transaction was, on the chain and with the indexer, and since when."""

    def __init__(self) -> None:
        self.on_chain: dict[str, int] = {}
        """The blocks of those with the event."""
        self.held: dict[str, int] = {}
        """Under which block the indexer has it."""
        self.chain_changed_at: dict[str, int] = {}
        self.held_changed_at: dict[str, int] = {}
        self.final_at: dict[str, int] = {}
        """When an absent one became final below the indexer's position."""
        self.is_tail: set[str] = set()
        """Those that the indexer never had, so that they are found by the first comparison."""
        self.was_final: set[str] = set()
        """Those in blocks that had been final when the chain changed there: such blocks are not read again."""

    def put_on_chain(self, at: int, transaction: str, block: int) -> None:
        self.on_chain[transaction] = block
        self.chain_changed_at[transaction] = at
        self.final_at.pop(transaction, None)

    def take_off_chain(self, at: int, transaction: str) -> None:
        if self.on_chain.pop(transaction, None) is not None:
            self.chain_changed_at[transaction] = at

    def hold(self, at: int, transaction: str, block: int) -> None:
        if transaction not in self.held:
            self.held_changed_at[transaction] = at
        self.held[transaction] = block
        self.final_at.pop(transaction, None)

    def let_go(self, at: int, transaction: str) -> None:
        if self.held.pop(transaction, None) is not None:
            self.held_changed_at[transaction] = at


class Oracle:
    """Compares what is said with what is true. ``complaints`` has to stay empty."""

    def __init__(self, truth: Truth, repeat_ms: int, *, is_tail_promised: bool, is_past_promised: bool) -> None:
        self.complaints: list[str] = []
        self.found: set[str] = set()
        self._truth = truth
        self._repeat_ms = repeat_ms
        self._is_tail_promised = is_tail_promised
        self._is_past_promised = is_past_promised
        self._said_at: dict[str, int] = {}
        self._said: dict[str, frozenset[str]] = {"missing": frozenset(), "extra": frozenset()}

    def hear(self, now: Instant, began_at: int, missing: Collection[str], extra: Collection[str]) -> None:
        """What is confirmed now, by a look that began then."""
        for what, said in (("missing", frozenset(missing)), ("extra", frozenset(extra))):
            for transaction in said - self._said[what]:
                self.found.add(transaction)
                self._said_at[transaction] = now.at
                self._judge_new(now, began_at, what, transaction)
            for transaction in said & self._said[what]:
                self._judge_kept(now, what, transaction)
            self._said[what] = said

    def _judge_new(self, now: Instant, began_at: int, what: str, transaction: str) -> None:
        truth = self._truth
        chain_at = truth.chain_changed_at.get(transaction, -(10**15))
        held_at = truth.held_changed_at.get(transaction, -(10**15))
        is_on_chain, is_held = transaction in truth.on_chain, transaction in truth.held
        was_other_chain, was_other_held = chain_at >= began_at - LOOK_MS, held_at >= began_at - LATEST_MS
        if what == "missing":
            if not is_on_chain and not was_other_chain:
                self._complain(now, f"{transaction} is said to be missing and is not on the chain")
            if is_held and not was_other_held:
                self._complain(now, f"{transaction} is said to be missing and the indexer has it")
            if not is_held and held_at > now.at - MINUTE:
                self._complain(now, f"{transaction} is said to be missing sooner than a minute after it was lost")
            if is_on_chain and truth.on_chain[transaction] > now.position:
                self._complain(now, f"{transaction} is said to be missing above the indexer's position")
        else:
            if is_on_chain and not was_other_chain:
                self._complain(now, f"{transaction} is said to be extra and is on the chain")
            if not is_held and not was_other_held:
                self._complain(now, f"{transaction} is said to be extra and the indexer does not have it")
            if is_held and held_at > now.at - MINUTE:
                self._complain(now, f"{transaction} is said to be extra sooner than a minute after it came")

    def _judge_kept(self, now: Instant, what: str, transaction: str) -> None:
        truth = self._truth
        calm_at = max(now.calm_since, truth.held_changed_at.get(transaction, 0))
        is_wrong_about_list = (transaction in truth.held) == (what == "missing")
        if is_wrong_about_list and self._is_tail_promised and now.at - calm_at > HEAL_MS:
            self._complain(now, f"{transaction} is still said to be {what} though the list is right again")
        told = now.told_position
        has_moved = truth.chain_changed_at.get(transaction, 0) > self._said_at[transaction]
        if what == "missing" and told is not None and truth.on_chain.get(transaction, 0) > told and not has_moved:
            self._complain(now, f"{transaction} is still said to be missing above what the indexer said")
        is_wrong_about_chain = (transaction in truth.on_chain) == (what == "extra")
        calm_at = max(now.calm_since, truth.chain_changed_at.get(transaction, 0))
        if is_wrong_about_chain and self._is_tail_promised and now.at - calm_at > PROVE_MS:
            self._complain(now, f"{transaction} is still said to be {what} though the chain changed")

    def expect(self, now: Instant, absent: Mapping[str, int], surplus: Mapping[str, int]) -> None:
        """What the indexer lacks, and has too much, by the blocks: is it said in time?"""
        for what, differing in (("missing", absent), ("extra", surplus)):
            for transaction, block in differing.items():
                if what == "missing" and transaction in self._truth.was_final:
                    continue
                if what == "extra" and block < min(self._truth.on_chain.values(), default=0):
                    continue  # nothing shows that an endpoint is not pruned there
                if block > min(now.final, now.position):
                    self._truth.final_at.pop(transaction, None)
                    continue
                final_at = self._truth.final_at.setdefault(transaction, now.at)
                if transaction in self._said[what]:
                    continue
                since_at = max(final_at, now.calm_since)
                if transaction in self._truth.is_tail and what == "missing":
                    is_late = self._is_tail_promised and now.at - since_at > TAIL_MS
                elif now.swept_at is None:
                    is_late = False
                else:
                    is_late = self._is_past_promised and (
                        now.at - max(since_at, now.swept_at) > self._repeat_ms * 6 // 5 + 2 * TAIL_MS
                    )
                if is_late:
                    self._complain(now, f"{transaction} in block {block} is not said to be {what}")

    @property
    def false_accusations(self) -> list[str]:
        """The complaints of what is said and is not so, and not of what is said late."""
        return [each for each in self.complaints if " is said to be " in each]

    def _complain(self, now: Instant, text: str) -> None:
        self.complaints.append(f"{now.at // 1000} s: {text}")
