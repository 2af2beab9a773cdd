"""A history held against the diary."""

import json
from typing import NamedTuple

from lookout.base.instants import parse_instant, parse_second
from lookout.core.model import Check
from tests.oracles.history import uptime
from tests.system.day.diary import Diary


class Comparison(NamedTuple):
    exact: str
    """The characters of all buckets, of any row, that could be nothing else."""
    open: int
    """How many buckets could have had another character: a border falls into them, or nobody wrote."""
    wrong: tuple[str, ...]


def compare(diary: Diary, body: bytes) -> Comparison:
    """Every ended bucket of every row, and their uptime."""
    history = json.loads(body)
    now, from_at = parse_instant(history["generatedAt"]), parse_second(history["from"])
    exact, open_, wrong = [], 0, []
    for row in history["rows"]:
        check, buckets = Check(row["service"], row["chainId"]), row["buckets"]
        if row["uptime"]["24h"] != uptime(buckets[-86_400 // diary.scale.bucket_s - 1 :]):
            wrong.append(f"{check}: the uptime of {buckets} is said to be {row['uptime']}")
        pieces = diary.pieces(check, now)
        for number, character in enumerate(buckets[:-1]):
            possible = diary.characters(pieces, from_at + 1000 * diary.scale.bucket_s * number)
            if character not in possible:
                wrong.append(f"{check}: bucket {number} of {buckets} has to be {' or '.join(sorted(possible))}")
            elif len(possible) == 1:
                exact.append(character)
            else:
                open_ += 1
    return Comparison("".join(exact), open_, tuple(wrong))
