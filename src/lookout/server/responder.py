"""From a request to its reply: a pure function of the replies there are."""

from collections.abc import Mapping

from lookout.server.conditional import matches
from lookout.server.negotiation import prefers_gzip
from lookout.server.replies import NOT_FOUND, Form, Reply, Resource


def respond(
    resources: Mapping[str, Resource],
    method: str,
    path: str,
    if_none_match: str | None,
    accept_encoding: str | None = None,
) -> Reply:
    """The reply to a request. ``path`` is without its query, which changes nothing (A1); methods are as they were
    written, since they have no other case."""
    resource = resources.get(path)
    if resource is None:
        return NOT_FOUND
    if method in ("GET", "HEAD"):
        chosen, other = resource.plain, resource.gzip
        if other is not None and accept_encoding is not None and prefers_gzip(accept_encoding):
            chosen, other = other, chosen
        if if_none_match is None:
            return chosen.found
        return _unchanged(if_none_match, chosen) or _unchanged(if_none_match, other) or chosen.found
    return resource.preflight if method == "OPTIONS" else resource.not_allowed


def _unchanged(if_none_match: str, form: Form | None) -> Reply | None:
    """The 304, if the client has this form."""
    if form is None or form.not_modified is None:
        return None
    return form.not_modified if matches(if_none_match, form.etag) else None
