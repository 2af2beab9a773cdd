"""Reading both sides: the whole list of some blocks, and what enough endpoints give alike."""

from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from lookout.core.completeness.asks import Ask, AskList, AskLogs, AskReceipt, Listed, Log, Receipt, Refused
from lookout.core.completeness.coverage import Coverage, Reach, Transaction, Trouble, pause_list
from lookout.core.completeness.tasks import Facts, Rules, endpoints_for

# A request too large costs next to nothing at a list, but some of the budget at an endpoint.
_MOST_FAILURES: Final = 3
FEW: Final = 100
"""So many blocks are too much for no list."""
_LIST_PATIENCE: Final = 1
_ENDPOINT_PATIENCE: Final = 16
_SHORTEST_CUT: Final = 50
"""No server is known to cut a list to fewer entries on its own; Ponder does so to as many."""


class Agreed(NamedTuple):
    """The chain's side of some blocks."""

    endpoints: tuple[str, ...]
    transactions: tuple[Transaction, ...]
    blocks: Mapping[str, int]
    """By the transactions' hashes."""


def read_list(
    coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int
) -> Generator[Ask, Any, tuple[Coverage, Listed | Trouble | None]]:
    """The whole list of these blocks, or why there is none; None if fewer blocks are asked for next time."""
    answer, asked = (yield AskList(first, last)), last - first + 1
    if is_whole(answer, rules):
        most_entries = max(coverage.most_entries, answer.entries)
        reach = coverage.list_reach.grow(asked, _LIST_PATIENCE)
        return replace(coverage, list_reach=reach, most_entries=most_entries, list_failures=0), answer
    if isinstance(answer, Listed) or answer.asks_for_less:
        coverage, trouble = ask_less(coverage, answer, asked)
    else:
        trouble = "list_failed"
        if coverage.list_failures >= _MOST_FAILURES and asked > FEW:  # it may be too much, whatever it says
            coverage = replace(coverage, list_reach=coverage.list_reach.shrink(asked))
    return (pause_list(coverage, facts.now) if trouble else coverage), trouble


def ask_less(coverage: Coverage, answer: Listed | Refused, asked: int) -> tuple[Coverage, Trouble | None]:
    """The list of fewer blocks next time, if there are fewer."""
    is_cut = isinstance(answer, Listed)
    if asked == 1:
        return coverage, "list_cut" if is_cut else "list_failed"
    return replace(coverage, list_reach=coverage.list_reach.shrink(asked)), None


def is_whole(answer: Listed | Refused, rules: Rules) -> bool:
    """Whether it is a list, and not one that was cut."""
    return isinstance(answer, Listed) and answer.entries < rules.limit


def expect_cuts(rules: Rules, coverage: Coverage) -> Rules:
    """A list as long as the longest one so far counts as cut: it may have been, without a word."""
    return replace(rules, limit=min(rules.limit, _find_shortest_cut(coverage)))


def _find_shortest_cut(coverage: Coverage) -> int:
    return max(coverage.most_entries, _SHORTEST_CUT)


def rule_out_cut(coverage: Coverage, listed: Listed, first: int, last: int) -> Generator[Ask, Any, bool]:
    """Whether the list of these blocks was not cut without a word: it is shorter than another, or its two halves have
    the same together, and each of them less."""
    if listed.entries < _find_shortest_cut(coverage):
        return True
    if first == last:
        return False
    middle = (first + last) // 2
    halves = (yield AskList(first, middle)), (yield AskList(middle + 1, last))
    are_shorter = all(isinstance(each, Listed) and each.entries < listed.entries for each in halves)
    return are_shorter and halves[0].hashes | halves[1].hashes == listed.hashes


def read_logs(
    coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int
) -> Generator[Ask, Any, tuple[Coverage, Agreed | Trouble | None]]:
    """The logs that enough endpoints gave alike, or why there are none; None if fewer are asked for next time."""
    asked = last - first + 1
    trouble: Trouble = "logs_failed"
    givers: dict[frozenset[Log], list[str]] = {}
    names = endpoints_for(coverage, facts, last)
    for name in names:
        answer = yield AskLogs(name, first, last)
        if isinstance(answer, Refused):
            coverage = _demote(coverage, name)
            if answer.asks_for_less and asked > 1:
                reach = coverage.reaches.get(name, Reach()).shrink(asked)
                coverage = replace(coverage, reaches={**coverage.reaches, name: reach})
                if name in names[: rules.endpoints]:
                    return coverage, None
            continue
        same = givers.setdefault(answer, [])
        same.append(name)
        if len(same) == rules.endpoints:
            for other in (each for some in givers.values() if some is not same for each in some):
                coverage = _demote(coverage, other)
            grown = {each: coverage.reaches.get(each, Reach()).grow(asked, _ENDPOINT_PATIENCE) for each in same}
            blocks = {log.transaction: log.block for log in answer}
            transactions = tuple(sorted(Transaction(block, each) for each, block in blocks.items()))
            coverage = replace(coverage, reaches={**coverage.reaches, **grown})
            return coverage, Agreed(tuple(same), transactions, blocks)
        trouble = "logs_disagree" if len(givers) > 1 else trouble
    return coverage, trouble


def read_receipt(
    coverage: Coverage, rules: Rules, facts: Facts, transaction: str, last: int
) -> Generator[Ask, Any, tuple[Coverage, tuple[list[str], Receipt | None] | None]]:
    """What enough endpoints have of it alike, and which they are; None if they are not enough."""
    givers: dict[Receipt | None, list[str]] = {}
    for name in endpoints_for(coverage, facts, last):
        answer = yield AskReceipt(name, transaction)
        if isinstance(answer, Refused):
            coverage = _demote(coverage, name)
            continue
        same = givers.setdefault(answer, [])
        same.append(name)
        if len(same) == rules.endpoints:
            return coverage, (same, answer)
    return coverage, None


def have_oldest(endpoints: Iterable[str], oldest: Transaction) -> Generator[Ask, Any, bool]:
    """Whether these endpoints have the oldest transaction known: one that is pruned has forgotten it."""
    for name in endpoints:
        answer = yield AskReceipt(name, oldest.hash)
        if answer is None or isinstance(answer, Refused):
            return False
    return True


def _demote(coverage: Coverage, name: str) -> Coverage:
    """Ask the others before this one from now on."""
    return replace(coverage, endpoints=(*(each for each in coverage.endpoints if each != name), name))
