"""The stored form of how far the comparison of each indexer's list has come: a piece for each check (S19)."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

import msgspec

from lookout.core.completeness.coverage import DIGEST_BYTES, Coverage
from lookout.core.model import Check
from lookout.state.codec import check_counts, check_instants, naming

_COVERAGE: Final = "coverage/"  # and a check
_HASH: Final = re.compile(r"0x[0-9a-f]{64}", re.ASCII)


def name_coverage(check: Check) -> str:
    return f"{_COVERAGE}{check.service}/{check.chain_id}"


def encode_coverage(coverage: Coverage) -> bytes:
    return msgspec.json.encode(coverage)


def decode_coverages(pieces: Mapping[str, bytes]) -> dict[Check, Coverage]:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    coverages = {}
    for name, piece in pieces.items():
        if name.startswith(_COVERAGE):
            with naming(name):
                service, chain_id = name.removeprefix(_COVERAGE).split("/")
                coverage = coverages[Check(service, int(chain_id))] = msgspec.json.decode(piece, type=Coverage)
                _check(coverage)
    return coverages


def _check(coverage: Coverage) -> None:
    """ValueError for what is of the right type and cannot be: the comparison would go on from it."""
    findings = {**coverage.missing, **coverage.extra}.values()
    check_instants(coverage.began_at, coverage.newest_at, coverage.checked_at)
    check_instants(coverage.list_until_at, coverage.had_some_at)
    check_instants(*(at for each in coverage.stretches for at in (each.compared_at, each.doubted_at)))
    check_instants(*(at for each in findings for at in (each.seen_at, each.looked_at, each.proved_at)))
    check_counts(
        *(number for each in coverage.stretches for number in (each.first, each.last, each.count, each.entries))
    )
    check_counts(*(number for each in findings for number in (each.first, each.last, each.block)))
    check_counts(*(number for each in coverage.put_off for number in (each.first, each.last, each.times)))
    reaches = (coverage.list_reach, *coverage.reaches.values())
    check_counts(coverage.longest_list, *(number for each in reaches for number in (each.blocks, each.refused)))
    known = coverage.controls if coverage.oldest is None else (coverage.oldest, *coverage.controls)
    check_counts(coverage.most_entries, coverage.list_failures, *(each.block for each in known))
    for transaction in (*coverage.missing, *coverage.extra, *(each.hash for each in known)):
        if not _HASH.fullmatch(transaction):
            raise ValueError(f"{transaction[:40]} is not a transaction's hash")
    if any(some[key].hash != key for some in (coverage.missing, coverage.extra) for key in some):
        raise ValueError("a transaction stands under another one's hash")
    if any(len(each.digest) != DIGEST_BYTES or each.first > each.last for each in coverage.stretches):
        raise ValueError("a stretch cannot be")
    if any(one.last >= other.first for one, other in pairwise(coverage.stretches)):
        raise ValueError("stretches are out of order")
