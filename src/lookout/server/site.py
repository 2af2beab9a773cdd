"""What a server serves beside the two documents, as the deployment is described."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from lookout.server.replies import NO_TIMED_REPLIES, Resource, TimedReplies

# What is made of both documents' bytes, at an instant, so long after the live report arrived.
Feeds = Callable[[bytes | None, bytes | None, int, int], TimedReplies]


class Site(NamedTuple):
    """What is served: the two endpoints' paths, replies that never change, and what time makes untrue, made after each
    publication and whenever that is over."""

    paths: tuple[str, str]
    others: Mapping[str, Resource] = MappingProxyType({})
    feeds: Feeds = lambda *_: NO_TIMED_REPLIES


class DescribedSite:
    """The site of the description in the store, or else of this server's own."""

    def __init__(self, own: Site, redescribe: Callable[[bytes], Site]) -> None:
        """``redescribe`` gives the site of a stored description."""
        self.current = self._own = own
        self._redescribe = redescribe
        self._about: bytes | None = None  # the stored description that is followed

    def follow(self, about: bytes | None) -> None:
        """Serve the site of this stored description, None being the own."""
        if about != self._about:
            self._about = about
            self.current = self._own if about is None else self._redescribe(about)
