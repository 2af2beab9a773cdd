"""The table of a witness."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from yarl import URL

from lookout.base.problem import Problem
from lookout.base.setting_types import Name, Text, Url, must
from lookout.base.url import find_url_mistake
from lookout.core.model import Check
from lookout.core.services import Service, find_unknown_services
from lookout.protocols.client.request import AccessTable


class WitnessTable(AccessTable, frozen=True, kw_only=True):
    """``[[witnesses]]``"""

    name: Name
    """What people see, such as `"Singapore"`.
    Example: "Singapore"
    Allowed: one non-blank line; each once"""
    url: Url
    """The witness's own server, without a cache before it; never published.
    Example: "http://127.0.0.1:8081\""""
    public_url: Annotated[
        str, must(lambda url: not url or find_url_mistake(url) is None, "has to be an address, or empty for none")
    ] = ""
    """Its status page, for people.
    Allowed: address, or `""` for none"""
    services: tuple[Text, ...] = ()
    """The services that it watches; `[]` means all.
    Allowed: names of services"""

    def watches(self, check: Check) -> bool:
        return check.is_among(self.services, ())


def check_witnesses(witnesses: Iterable[WitnessTable], services: Iterable[Service]) -> Iterator[Problem]:
    witnesses, known = tuple(witnesses), dict.fromkeys(service.name for service in services)
    for name, times in Counter(witness.name for witness in witnesses).items():
        if times > 1:
            yield Problem("witnesses", f"the name {name!r} is used {times} times; give each witness its own")
    first: dict[tuple[str, str | None, int | None, str], int] = {}
    for number, witness in enumerate(witnesses):
        url = URL(witness.url)  # the same address may be written with a port and in capitals
        before = first.setdefault((url.scheme, url.host, url.port, url.path.rstrip("/")), number)
        if before != number:
            yield Problem(f"witnesses[{number}].url", f"is that of witnesses[{before}], and would count it twice")
        yield from find_unknown_services(f"witnesses[{number}].services", witness.services, known)


def doubt_witnesses(witnesses: Sequence[WitnessTable], place: str) -> Iterator[Problem]:
    """What may not be wanted; ``place`` is the monitor's own."""
    if len(witnesses) == 1:
        yield Problem("witnesses", "there is one: whenever it and this monitor differ, a row is unknown; add another")
    if witnesses and not place:
        yield Problem("monitor.place", "this monitor has no name among the places; give it one")
    if place in (witness.name for witness in witnesses):
        yield Problem("monitor.place", "is the name of a witness as well")
