"""Why a row is not current, for the operator: a stable code, and perhaps a detail after a colon (M16)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from lookout.base.instants import format_second, format_time
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, FaultyBlocks, Found, Indexes, Members, MissingList, Nothing, Peers, Row


class CauseEntry(NamedTuple):
    """The words for a cause, in which the detail replaces "…" or else follows, and what to do next."""

    words: str
    next_step: str


_ASK_OWNER: Final = "look at the service's own log, or ask those who run it"
_CHECK_ADDRESS: Final = "check its address in the configuration"

# Why a probe failed: the stable code, and its words. A source was reached if it sent any answer, usable or not.
CAUSES: Final = {
    "bad_address": CauseEntry("the address cannot be asked", _CHECK_ADDRESS),
    "bad_encoding": CauseEntry("no usable answer: compressed in a way that cannot be undone", _ASK_OWNER),
    "bad_http": CauseEntry(
        "no usable answer: not HTTP as it should be", f"{_CHECK_ADDRESS}; if it is right, {_ASK_OWNER}"
    ),
    "broken_off": CauseEntry("no usable answer: the connection ended within it", _ASK_OWNER),
    "closed": CauseEntry("no answer: the connection was closed", _ASK_OWNER),
    "dns": CauseEntry(
        "not reached: its name could not be resolved", f"{_CHECK_ADDRESS}, and this machine's name servers"
    ),
    "future_block": CauseEntry(
        "its newest block is from the future, or this machine's clock is slow",
        "check this machine's clock, then the node's",
    ),
    "graphql_errors": CauseEntry("no usable answer: GraphQL errors", _ASK_OWNER),
    "http_status": CauseEntry("no usable answer: HTTP …", _ASK_OWNER),
    "jsonrpc_error": CauseEntry(
        "no usable answer: JSON-RPC error …", f"{_ASK_OWNER}; if it lacks the method, {_CHECK_ADDRESS}"
    ),
    "network": CauseEntry(
        "not reached: the network did not let the connection through", "check this machine's network and firewall"
    ),
    "not_expected": CauseEntry(
        "wrong answer: the value is not the configured one", f"{_ASK_OWNER}; if the value is right, change `expect`"
    ),
    "not_json": CauseEntry(
        "no usable answer: not JSON", f"{_CHECK_ADDRESS}; a proxy or a login page may answer in its place"
    ),
    "not_understood": CauseEntry(
        "no usable answer: not in the protocol's format", "check its kind and its address in the configuration"
    ),
    "plug_in": CauseEntry(
        "the plug-in of this kind did something wrong", "look at the monitor's log, and at the plug-in"
    ),
    "pointer_missing": CauseEntry(
        "no usable answer: nothing at … in its answer",
        "if it worked before, look at the service; otherwise compare `pointer` with its answer",
    ),
    "proxy": CauseEntry(
        "not reached: the proxy did not let the request through", "check the proxy, and its address and password"
    ),
    "rate_limited": CauseEntry(
        "no usable answer: asked too often", "use a key that may ask more often, or raise policy.recheck_s"
    ),
    "redirect": CauseEntry(
        "no usable answer: it redirects, which is not followed",
        "if the new address is right, put it into the configuration",
    ),
    "refused": CauseEntry(
        "not reached: nothing listens at its address",
        "start the service, or ask those who run it; or check its host and port in the configuration",
    ),
    "reset": CauseEntry("no answer: the connection was reset", _ASK_OWNER),
    "store_status": CauseEntry("no usable answer: the waku node's store has status …", _ASK_OWNER),
    "timeout": CauseEntry(
        "no complete answer in time (waiting for: …)",
        "ask it from another machine: if that works, check this one's network, if not, the service",
    ),
    "tls": CauseEntry(
        "not reached: no secure connection",
        "check its certificate, `ca_file` if it is your own, and the scheme and port of its address",
    ),
    "too_large": CauseEntry("no usable answer: too large", f"{_CHECK_ADDRESS}; what answers is something else"),
    "wrong_chain": CauseEntry("a node of another chain", _CHECK_ADDRESS),
}
# Causes found by a probe whose request succeeded.
OWN_CAUSES: Final = {
    "apart": CauseEntry(
        "far from the head that the chain's other endpoints agree on",
        "replace it in the chain's `rpc`, or ask those who run it",
    ),
    "behind": CauseEntry(
        "behind: …",
        "wait while its position moves; if it stands still, restart it, or ask those who run it",
    ),
    "certificate_ends": CauseEntry("its certificate ends on …", "renew it, or ask those who run it"),
    "dissent": CauseEntry("…", "ask it from there; look for a block or a rate limit"),
    "own_dissent": CauseEntry("…", "ask it from another machine; look for a block or a rate limit of this one"),
    "silent": CauseEntry(
        "it gave no row that counts lately", "look at its monitor and its server, and at the way to them"
    ),
    "cached": CauseEntry(
        "a cache answered with a copy … old", "name the witness's own server in `url`, without a cache before it"
    ),
    "clocks_differ": CauseEntry(
        "its clock and this machine's differ by …", "check both machines' clocks: rows of another time do not count"
    ),
    "combined": CauseEntry(
        "its report is combined from several places, and would count a place twice",
        "name a deployment without `[[witnesses]]`",
    ),
    "far_above": CauseEntry(
        "far above the head: another chain, or a wrong pointer",
        "check its address and `pointer`, and that it is an indexer of this chain; then the chain's `rpc`",
    ),
    "incomplete": CauseEntry(
        "its list of transactions has a gap",
        "those blocks have to be indexed again: by you, or those who run it",
    ),
    "inconsistent": CauseEntry(
        "its list has transactions that the chain does not have",
        "those blocks have to be indexed again: by you, or those who run it",
    ),
    "node_gap": CauseEntry(
        "the node and the indexer's list do not hold the same transactions",
        "compare both with the chain, and repair the wrong one, or ask those who run it; you may run neither",
    ),
    "indexing_errors": CauseEntry(
        "it says that it has indexing errors",
        "look at its log: its data may be incomplete, or it may stop; repair it, or ask those who run it",
    ),
    "missing_list": CauseEntry(
        "the node does not carry the required list", "compare `required_list` with the lists that the node has"
    ),
    "no_head": CauseEntry(
        "the chain's RPC endpoints agree on no head, so there is nothing to compare with",
        "repair the chain's endpoints, or replace them in the configuration (`rpc`); the services themselves may work",
    ),
    "no_endpoint": CauseEntry(
        "no RPC endpoint of this chain answers, so there is nothing to compare with",
        "repair the chain's endpoints, or replace them in the configuration (`rpc`); the services themselves may work",
    ),
    "no_rows": CauseEntry(
        "its report has none of the rows that it should watch", "compare its configuration with this one"
    ),
    "no_new_block": CauseEntry(
        "no new block since …: the chain stands still, or all its endpoints do",
        "look at a public explorer of this chain: if it has newer blocks, replace the chain's endpoints (`rpc`);"
        " otherwise wait for the chain",
    ),
    "no_peers": CauseEntry("the node is connected to no peer", "check the waku node's network and its bootstrap nodes"),
    "not_moving": CauseEntry("behind, and not moving since …", "restart it, or ask those who run it"),
    "none_responding": CauseEntry(
        "… monitored broadcasters announce fees",
        "check that the waku node hears anybody; broadcasters are other people's",
    ),
    "not_stored": CauseEntry(
        "nothing can be stored, and readers get the last report: …",
        "make room on the store's disk, or repair its database",
    ),
    "nothing": CauseEntry(
        "it answered, and has nothing for this chain", "if that is as it should be, leave this chain out of its table"
    ),
    "nothing_left": CauseEntry(
        "it answered, and has nothing for this chain any more",
        "look at its configuration and its log; if that is as it should be, leave this chain out of its table",
    ),
    "not_a_report": CauseEntry(
        "no usable answer: not a live report (…)", "check its address in the configuration, and its `protocol`"
    ),
    "other_version": CauseEntry(
        "its report has another version of the format", "upgrade the older of the two deployments"
    ),
    "own_fault": CauseEntry(
        "a fault of this machine's own: …",
        "repair this machine (docs/operations.md); nothing is known of the other side",
    ),
    "some_silent": CauseEntry(
        "… monitored broadcasters announce fees", "wait: broadcasters are other people's, and the others may work"
    ),
    "still_reading": CauseEntry(
        "not all announcements that count were read yet, so silence proves nothing", "wait: reading goes on"
    ),
}
ALL_CAUSES: Final = {**CAUSES, **OWN_CAUSES}
_STANDS_AFTER_MS: Final = 60_000  # a position stands still if observations this far apart find it
_CERTIFICATE_ENDS_SOON_MS: Final = 14 * 86_400_000
WITHOUT_HEAD: Final = ("no_head", "no_endpoint")


def choose_next_step(cause: str) -> str | None:
    """What to do about a cause; None if it is unknown."""
    code, detail = split_cause(cause)
    if code == "http_status" and (detail or "").startswith("4"):  # the request is wrong
        return "check its address, key and headers in the configuration"
    return ALL_CAUSES[code].next_step if code in ALL_CAUSES else None


def describe_cause(cause: str) -> str:
    """A cause in words; an unknown cause as it is."""
    code, detail = split_cause(cause)
    if code not in ALL_CAUSES:
        return cause
    words = ALL_CAUSES[code].words
    if "…" in words:
        return words.replace("…", detail or "?")
    return f"{words} ({detail})" if detail else words


def explain(
    found: Found,
    row: Row,
    head: Reading | None,
    gaps: str = "",
    *,
    endpoints_answer: bool = True,
) -> str | None:
    """Why a row is not current; None if it is. ``head`` is the head that its position was compared with, ``gaps`` what
    is wrong with an indexer's list or with a node compared with it, and ``endpoints_answer`` whether any endpoint of
    the chain answers."""
    if row.status == "current":
        return None
    match found:
        case Failed(error):
            return error
        case Nothing("nothing") | Members(0, 0):
            return "nothing_left" if row.lost_data(row.observed_at or 0) else "nothing"
        case Nothing(cause):
            return cause
        case MissingList():
            return "missing_list"
        case Peers():
            return "no_peers"
        case Members(responding, monitored):
            return f"{'some_silent' if responding else 'none_responding'}: {responding} of {monitored}"
        case Blocks() if row.reason == "incompatible-reference":
            if head is not None:
                return f"far_above: head {head.height}"
            return "no_head" if endpoints_answer else "no_endpoint"
        case Blocks() if row.reason in ("incomplete", "inconsistent"):
            return _explain_gaps(row.reason, row, gaps)
        case Indexes() if row.reason == "inconsistent":
            return _explain_gaps("node_gap", row, gaps)
        case Indexes():
            return _explain_lag(row, "indexes below its own head")
        case _:
            return _explain_lag(row, "blocks below the head")


def describe_no_new_block(since_at: int, at: int) -> str:
    return f"no_new_block: {format_time(since_at, at)}"


def find_doubts(found: Iterable[Found], certificate_ends_at: int | None, at: int) -> tuple[str, ...]:
    """What is wrong with a source, for the operator alone: rows do not depend on it."""
    doubts = ["indexing_errors"] if any(isinstance(what, FaultyBlocks) for what in found) else []
    if certificate_ends_at is not None and certificate_ends_at - at < _CERTIFICATE_ENDS_SOON_MS:
        doubts.append(f"certificate_ends: {format_second(certificate_ends_at)[:10]}")
    return tuple(doubts)


def code_of(cause: str) -> str:
    return split_cause(cause)[0]


def split_cause(cause: str) -> tuple[str, str | None]:
    code, _, detail = cause.partition(": ")
    return code, detail or None


def _explain_gaps(code: str, row: Row, gaps: str) -> str:
    metrics = row.metrics
    numbers = {"missing": metrics.missing, "extra": metrics.extra, "breaks": metrics.breaks, "apart": metrics.gap}
    return f"{code}: {gaps or ', '.join(f'{count} {what}' for what, count in numbers.items() if count)}"


def _explain_lag(row: Row, what: str) -> str:
    head, position, since_at = row.metrics.head, row.metrics.position, row.still_since_at
    if not (isinstance(head, int) and isinstance(position, int)):
        return "behind"
    lag = f"{head - position} {what} ({position} of {head})"
    if since_at is None or not row.stood_still(_STANDS_AFTER_MS):
        return f"behind: {lag}"
    return f"not_moving: {format_time(since_at, row.observed_at or since_at)}; {lag}"
