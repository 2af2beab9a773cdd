"""The observation log's lines: bytes in, events out, and back."""

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, assert_never

import msgspec
from msgspec import Meta, Struct

from lookout.base.instants import format_instant, parse_instant
from lookout.base.text import shorten
from lookout.core.heads import Reading
from lookout.core.model import (
    LARGEST_METRIC,
    Answer,
    Blocks,
    Check,
    Count,
    Failed,
    Found,
    Gaps,
    Indexes,
    Members,
    Metrics,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Reason,
    Responding,
    Row,
    Status,
)
from lookout.core.services import OWN_NAME, PPOI, SERVICES, Service
from lookout.documents.reports import live_row


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


class Viewed(Struct, frozen=True, gc=False):
    """From now on this is what a witness sees of a row (W9)."""

    at: int
    witness: str
    row: Row


class Stopped(Struct, frozen=True, gc=False):
    at: int


Event = Started | HeadRead | Observation | Compared | Viewed | Stopped
Outcome = Literal["answered", "failed", "nothing", "missing-list"]


_ChainId = Annotated[int, Meta(gt=0, le=LARGEST_METRIC)]


class _Line(Struct, tag_field="kind", rename="camel", gc=False):
    """A line of one kind; fields that it does not declare are ignored."""

    at: str


class _StartLine(_Line, tag="start"):
    step_ms: Count = 0


class _HeadLine(_Line, tag="head"):
    chain_id: _ChainId
    height: Count
    block_at: str
    read_at: str | None = None


class _ProbeLine(_Line, tag="probe"):
    """The outcome and the service decide which of the other fields the line must have."""

    service: str
    chain_id: _ChainId | None
    outcome: Outcome
    position: Count | None = None
    head: Count | None = None
    responding: Count | None = None
    monitored: Count | None = None
    peers: Count | None = None
    error: str | None = None


class _CoverageLine(_Line, tag="coverage"):
    service: str
    chain_id: _ChainId | None
    missing: Count
    extra: Count
    breaks: Count = 0


class _AgreementLine(_Line, tag="agreement"):
    chain_id: _ChainId
    gap: Count


class _ViewLine(_Line, tag="view"):
    witness: str
    service: str
    chain_id: _ChainId | None
    status: Status
    reason: Annotated[Reason, Meta(pattern=r"\A[a-z][a-z0-9-]{0,39}\Z")]
    observed_at: str | None
    last_success_at: str | None
    expires_at: str | None
    metrics: Metrics


class _StopLine(_Line, tag="stop"):
    pass


_DECODER: Final = msgspec.json.Decoder(
    _StartLine | _HeadLine | _ProbeLine | _CoverageLine | _AgreementLine | _ViewLine | _StopLine
)


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
    at = _instant("at", fields.at)
    # Types are compared, since isinstance and match take much longer to tell that a Struct is of another one.
    if type(fields) is _ProbeLine:
        check, service = _check(fields.service, fields.chain_id)
        return Observation(check, at, _found(service, fields))
    if type(fields) is _HeadLine:
        return HeadRead(at, fields.chain_id, _reading(at, fields))
    if type(fields) is _CoverageLine:
        check, service = _check(fields.service, fields.chain_id)
        if service is None or not service.has_list:
            raise LineError(f"coverage is of indexers alone, not of {fields.service}")
        return Compared(at, check, Gaps(fields.missing, fields.extra, fields.breaks))
    if type(fields) is _AgreementLine:
        return Compared(at, Check(PPOI, fields.chain_id), Gaps(gap=fields.gap))
    if type(fields) is _ViewLine:
        return Viewed(at, fields.witness, _row(fields))
    return Started(at, fields.step_ms) if type(fields) is _StartLine else Stopped(at)


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
        case Viewed(_, witness, row):
            line |= {"kind": "view", "witness": witness, **msgspec.to_builtins(live_row(row))}
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


def _found(service: Service | None, fields: _ProbeLine) -> Found:
    match fields.outcome:
        case "answered":
            return _answered(_answer_of(fields) if service is None else service.answer, fields)
        case "failed":
            if fields.error is None:
                raise LineError("error is missing")
            return Failed(fields.error)
        case "nothing":
            return Nothing()
        case "missing-list" if service is not None and not service.has_required_list:
            raise LineError(f"outcome missing-list is not one of {service.name}")
        case "missing-list":
            return MissingList()
        case _ as never:
            assert_never(never)


def _answer_of(fields: _ProbeLine) -> type[Answer]:
    """The type of answer of an operator's own service: the first whose last field the line has."""
    for answer in (Peers, Members, Indexes, Blocks):
        if getattr(fields, answer.__struct_fields__[-1]) is not None:
            return answer
    return Responding


def _answered(answer: type[Answer], fields: _ProbeLine) -> Found:
    values = [getattr(fields, name) for name in answer.__struct_fields__]
    if None in values:
        raise LineError(f"an answer of this service has {' and '.join(answer.__struct_fields__)}")
    if answer is Members and values[0] > values[1]:
        raise LineError(f"responding is {values[0]}, above monitored, which is {values[1]}")
    return answer(*values)


@lru_cache(maxsize=65_536)  # a log repeats a few checks
def _check(name: str, chain_id: int | None) -> tuple[Check, Service | None]:
    if name not in SERVICES:
        if OWN_NAME.fullmatch(name) is None:
            raise LineError(f"service is {shorten(name, 60)!r}; it has to be a name of {OWN_NAME.pattern}")
        return Check(name, chain_id), None
    service = SERVICES[name]
    if service.is_shared != (chain_id is None):
        raise LineError(f"chainId has to be {'null' if service.is_shared else 'a number'} for {name}")
    return Check(name, chain_id), service


def _reading(at: int, fields: _HeadLine) -> Reading:
    read_at = at if fields.read_at is None else _instant("readAt", fields.read_at)
    if read_at > at:
        raise LineError(f"readAt is {fields.read_at}, later than at, which is {fields.at}")
    return Reading(read_at, fields.height, _instant("blockAt", fields.block_at))


def _row(fields: _ViewLine) -> Row:
    check, _ = _check(fields.service, fields.chain_id)
    observed_at = _instant_or_none("observedAt", fields.observed_at)
    last_success_at = _instant_or_none("lastSuccessAt", fields.last_success_at)
    expires_at = _instant_or_none("expiresAt", fields.expires_at)
    return Row(check, fields.status, fields.reason, observed_at, last_success_at, expires_at, fields.metrics)


def _instant_or_none(name: str, text: str | None) -> int | None:
    return None if text is None else _instant(name, text)


def _instant(name: str, text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise LineError(f"{name}: {error}") from None
