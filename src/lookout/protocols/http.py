"""Any HTTP service: it answers with the expected code, and perhaps with a JSON document that says that all is well."""

from typing import Annotated, Final

from msgspec import Meta

from lookout.core.model import Responding
from lookout.protocols.answers import decode
from lookout.protocols.client.request import Request
from lookout.protocols.expectation import ExpectationTable, check_value
from lookout.protocols.protocol import Protocol


class HttpTable(ExpectationTable, frozen=True):
    expect_code: Annotated[int, Meta(ge=200, le=599)] = 200


def parse_answer(body: bytes, settings: HttpTable) -> Responding:
    """Where nothing more is expected, the answer need not be JSON."""
    return check_value(decode(body), settings) if settings.expects_more else Responding()


HTTP: Final = Protocol(
    "http",
    Responding,
    HttpTable,
    request=lambda settings: Request("GET", settings.url, settings, expect_code=settings.expect_code),
    parse=parse_answer,
)
