"""From a request to its reply: a pure function of the replies there are."""

from collections.abc import Mapping

from lookout.api.conditional import matches
from lookout.api.replies import NOT_FOUND, Reply, Resource


def respond(resources: Mapping[str, Resource], method: str, path: str, if_none_match: str | None) -> Reply:
    """The reply to a request. ``path`` is without its query, which changes nothing (A1); methods are as they were
    written, since they have no other case."""
    resource = resources.get(path)
    if resource is None:
        return NOT_FOUND
    if method in ("GET", "HEAD"):
        if if_none_match is not None and resource.not_modified is not None and matches(if_none_match, resource.etag):
            return resource.not_modified
        return resource.found
    return resource.preflight if method == "OPTIONS" else resource.not_allowed
