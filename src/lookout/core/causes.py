"""Why a row is not current, for the operator: a stable code, and perhaps a detail after a colon (M16)."""

from typing import Final

from lookout.core.model import Blocks, Failed, Found, Members, MissingList, Nothing, Peers, Row

# The codes of what a probe found that is no failure of the request; those of requests are the client's.
OWN_CAUSES: Final = {
    "behind": "It trails what it should have reached, by so much.",
    "incomplete": "Its list lacks so many transactions that the chain has.",
    "inconsistent": "Its list has so many transactions that the chain does not have.",
    "missing_list": "The node does not carry the required list.",
    "no_head": "The chain's endpoints agreed on no head, so there is nothing to compare with.",
    "no_peers": "The node is connected to nobody.",
    "none_responding": "None of the monitored broadcasters announces fees.",
    "nothing": "It answered, and has nothing for this chain.",
    "own_fault": "The monitor could not ask, since it lacked something of its own: nothing is known of the other side.",
    "some_silent": "Some of the monitored broadcasters do not announce fees.",
    "still_reading": "Not all announcements that count were read yet, so that silence proves nothing.",
}


def explain(found: Found, row: Row) -> str | None:
    """Why what was found gave a row that is not current; None for one that is."""
    if row.status == "current":
        return None
    match found:
        case Failed(error):
            return error
        case Nothing(cause):
            return cause
        case MissingList():
            return "missing_list"
        case Peers():
            return "no_peers"
        case Members(0, 0):
            return "nothing"
        case Members(responding, monitored):
            return f"{'some_silent' if responding else 'none_responding'}: {responding} of {monitored}"
        case Blocks() if row.reason == "incompatible-reference":
            return "no_head"
        case Blocks() if row.reason in ("incomplete", "inconsistent"):
            return _explain_gaps(row)
        case _:
            return _explain_lag(row)


def code_of(cause: str) -> str:
    return split_cause(cause)[0]


def split_cause(cause: str) -> tuple[str, str | None]:
    """The code, and the detail if there is one."""
    code, _, detail = cause.partition(": ")
    return code, detail or None


def _explain_gaps(row: Row) -> str:
    numbers = {"missing": row.metrics.missing, "extra": row.metrics.extra}
    return f"{row.reason}: {', '.join(f'{count} {what}' for what, count in numbers.items() if count)}"


def _explain_lag(row: Row) -> str:
    head, position = row.metrics.head, row.metrics.position
    return f"behind: {head - position}" if isinstance(head, int) and isinstance(position, int) else "behind"
