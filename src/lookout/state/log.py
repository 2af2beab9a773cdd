"""The observation log's lines: bytes in, events out, and back."""

import json
from functools import lru_cache
from typing import Any, Final, Literal, assert_never

import msgspec
from msgspec import UNSET, Struct

from lookout.base.instants import format_instant, parse_instant
from lookout.base.text import shorten
from lookout.core.heads import Reading
from lookout.core.model import (
    LARGEST_METRIC,
    Answer,
    Blocks,
    Check,
    Failed,
    Found,
    Gaps,
    Indexes,
    Members,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Responding,
)
from lookout.core.services import OWN_NAME, PPOI, SERVICES, Service


class LineError(ValueError):
    """A line in another format than the log's; the text says why."""


class NotJsonError(LineError):
    """A line that is not JSON, perhaps cut off by a crash."""


class Started(Struct, frozen=True, gc=False):
    """The monitor began to run, or its clock was set; ``step_ms`` says how far forward, while it ran."""

    at: int
    step_ms: int = 0


class HeadRead(Struct, frozen=True, gc=False):
    """A chain's endpoints agreed on a head, before confirmations are subtracted. The answer with that head may have
    been read before the agreement."""

    at: int
    chain_id: int
    reading: Reading


class Compared(Struct, frozen=True, gc=False):
    """From now on these are the gaps of an indexer's list (S18, S20), or of a ppoi node beside one (S21)."""

    at: int
    check: Check
    gaps: Gaps


class Stopped(Struct, frozen=True, gc=False):
    at: int


Event = Started | HeadRead | Observation | Compared | Stopped
Outcome = Literal["answered", "failed", "nothing", "missing-list"]


class _Line(Struct, gc=False, rename="camel"):
    """The fields of all kinds of lines, most of them unchecked: kind and outcome decide which fields a line must have;
    others are ignored."""

    at: str
    kind: Any = UNSET
    chain_id: Any = UNSET
    height: Any = UNSET
    block_at: Any = UNSET
    read_at: Any = UNSET
    service: Any = UNSET
    outcome: Any = UNSET
    position: Any = UNSET
    head: Any = UNSET
    responding: Any = UNSET
    monitored: Any = UNSET
    peers: Any = UNSET
    error: Any = UNSET
    missing: Any = UNSET
    extra: Any = UNSET
    breaks: Any = UNSET
    gap: Any = UNSET
    step_ms: Any = UNSET


_DECODER: Final = msgspec.json.Decoder(_Line)


def parse_line(line: bytes) -> Event:
    """Read one line; LineError if it does not match the format exactly."""
    try:
        fields = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise LineError(f"not a line of the log: {error}") from None
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        raise NotJsonError(f"not JSON: {error}") from None
    except RecursionError:
        raise LineError("nested too deeply") from None
    try:
        at = parse_instant(fields.at)
    except ValueError as error:
        raise LineError(f"at: {error}") from None
    match fields.kind:
        case "probe":
            check, service = _check(fields)
            return Observation(check, at, _found(service, fields))
        case "head":
            return HeadRead(at, _chain_id(fields.chain_id), _reading(at, fields))
        case "coverage":
            check, service = _check(fields)
            return Compared(at, check, _gaps(service, fields))
        case "agreement":
            return Compared(at, Check(PPOI, _chain_id(fields.chain_id)), Gaps(gap=_count("gap", fields.gap)))
        case "start":
            return Started(at, 0 if fields.step_ms is UNSET else _count("stepMs", fields.step_ms))
        case "stop":
            return Stopped(at)
        case _:
            raise _wrong("kind", fields.kind, "start, head, probe, coverage, agreement or stop")


def format_event(event: Event) -> bytes:
    line: dict[str, Any] = {"at": format_instant(event.at)}
    match event:
        case Started(_, step_ms):
            line["kind"] = "start"
            if step_ms:
                line["stepMs"] = step_ms
        case Stopped():
            line["kind"] = "stop"
        case HeadRead(at, chain_id, reading):
            block_at = format_instant(reading.block_at)
            line |= {"kind": "head", "chainId": chain_id, "height": reading.height, "blockAt": block_at}
            if reading.at != at:
                line["readAt"] = format_instant(reading.at)
        case Observation(check, _, found):
            line |= {
                "kind": "probe",
                "service": check.service,
                "chainId": check.chain_id,
                "outcome": outcome_of(found),
            }
            line |= _fields(found)
        case Compared(_, check, gaps) if check.service == PPOI:
            line |= {"kind": "agreement", "chainId": check.chain_id, "gap": gaps.gap}
        case Compared(_, check, gaps):
            line |= {"kind": "coverage", "service": check.service, "chainId": check.chain_id}
            line |= {"missing": gaps.missing, "extra": gaps.extra}
            if gaps.breaks:
                line["breaks"] = gaps.breaks
        case _ as never:
            assert_never(never)
    return msgspec.json.encode(line) + b"\n"


def _fields(found: Found) -> dict[str, Any]:
    if isinstance(found, Failed):
        return {"error": found.error.encode(errors="replace").decode()}  # a file's name may be no valid text
    return {} if isinstance(found, Nothing) else msgspec.structs.asdict(found)  # lines do not record its cause


def outcome_of(found: Found) -> Outcome:
    match found:
        case Failed():
            return "failed"
        case Nothing():
            return "nothing"
        case MissingList():
            return "missing-list"
        case _:
            return "answered"


def _found(service: Service | None, fields: _Line) -> Found:
    outcome = fields.outcome
    if outcome == "answered":
        return _answered(_answer_of(fields) if service is None else service.answer, fields)
    if outcome == "failed":
        if type(fields.error) is not str:
            raise _wrong("error", fields.error, "a text")
        return Failed(fields.error)
    if outcome == "nothing":
        return Nothing()
    if outcome != "missing-list":
        raise _wrong("outcome", outcome, "answered, nothing, missing-list or failed")
    if service is not None and not service.has_required_list:
        others = " and ".join(other.name for other in SERVICES if other.has_required_list)
        raise LineError(f"outcome missing-list is for {others} alone, not for {service.name}")
    return MissingList()


def _gaps(service: Service | None, fields: _Line) -> Gaps:
    if service is None or not service.has_list:
        having = " and ".join(other.name for other in SERVICES if other.has_list)
        raise LineError(f"a line of kind coverage is for {having} alone, not for {fields.service}")
    breaks = 0 if fields.breaks is UNSET else _count("breaks", fields.breaks)
    return Gaps(_count("missing", fields.missing), _count("extra", fields.extra), breaks)


def _answer_of(fields: _Line) -> type[Answer]:
    """The type of answer, by the fields of a line."""
    if fields.peers is not UNSET:
        return Peers
    if fields.responding is not UNSET or fields.monitored is not UNSET:
        return Members
    if fields.head is not UNSET:
        return Indexes
    return Responding if fields.position is UNSET else Blocks


def _answered(answer: type[Answer], fields: _Line) -> Found:
    if answer is Blocks:
        return Blocks(_count("position", fields.position))
    if answer is Indexes:
        return Indexes(_count("position", fields.position), _count("head", fields.head))
    if answer is Peers:
        return Peers(_count("peers", fields.peers))
    if answer is Responding:
        return Responding()
    members = Members(_count("responding", fields.responding), _count("monitored", fields.monitored))
    if members.responding > members.monitored:
        raise LineError(f"responding is {members.responding}, above monitored, which is {members.monitored}")
    return members


def _check(fields: _Line) -> tuple[Check, Service | None]:
    try:
        return _checked(fields.service, fields.chain_id)
    except TypeError:  # a list or an object has no hash
        return _check_of(fields.service, fields.chain_id)


def _check_of(name: Any, chain_id: Any) -> tuple[Check, Service | None]:
    if name not in SERVICES:
        if not isinstance(name, str) or OWN_NAME.fullmatch(name) is None:
            raise _wrong("service", name, f"{', '.join(SERVICES.names)} or a name of {OWN_NAME.pattern}")
        return Check(name, None if chain_id is None else _chain_id(chain_id)), None
    service = SERVICES[name]
    if not service.is_shared:
        return Check(name, _chain_id(chain_id)), service
    if chain_id is not None:
        raise _wrong("chainId", chain_id, f"null for {name}")
    return Check(name, None), service


# A log repeats a few checks; typed, since true would be taken for 1.
_checked: Final = lru_cache(maxsize=65_536, typed=True)(_check_of)


def _chain_id(value: Any) -> int:
    if type(value) is int and 0 < value <= LARGEST_METRIC:
        return value
    raise _wrong("chainId", value, "a positive whole number")


def _count(name: str, value: Any) -> int:
    if type(value) is int and 0 <= value <= LARGEST_METRIC:
        return value
    raise _wrong(name, value, f"a whole number from 0 to {LARGEST_METRIC}")


def _reading(at: int, fields: _Line) -> Reading:
    height, block_at = _count("height", fields.height), _instant("blockAt", fields.block_at)
    read_at = at if fields.read_at is UNSET else _instant("readAt", fields.read_at)
    if read_at > at:
        raise LineError(f"readAt is {fields.read_at}, later than at, which is {fields.at}")
    return Reading(read_at, height, block_at)


def _instant(name: str, value: Any) -> int:
    if type(value) is not str:
        raise _wrong(name, value, "an instant like 2026-11-01T00:00:00.000Z")
    try:
        return parse_instant(value)
    except ValueError as error:
        raise LineError(f"{name}: {error}") from None


def _wrong(name: str, value: Any, allowed: str) -> LineError:
    if value is UNSET:
        return LineError(f"{name} is missing; it has to be {allowed}")
    if isinstance(value, list | dict):
        return LineError(f"{name} is {'a list' if isinstance(value, list) else 'an object'}; it has to be {allowed}")
    return LineError(f"{name} is {shorten(json.dumps(value), 60)}; it has to be {allowed}")
