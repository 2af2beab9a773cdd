"""An HTTP answer as a value, so that what the upstreams say is shaped without a network."""

import json
from typing import NamedTuple


class UpstreamReply(NamedTuple):
    """What goes back over the wire."""

    body: bytes
    content_type: str = "application/json"
    http_code: int = 200


def json_reply(document: object, http_code: int = 200) -> UpstreamReply:
    return UpstreamReply(json.dumps(document, separators=(",", ":")).encode(), http_code=http_code)


def text_reply(text: str, http_code: int) -> UpstreamReply:
    return UpstreamReply(text.encode(), "text/plain", http_code)


def html_reply(text: str, http_code: int) -> UpstreamReply:
    page = f"<!DOCTYPE html>\n<html><head><title>{text}</title></head><body><pre>{text}</pre></body></html>\n"
    return UpstreamReply(page.encode(), "text/html", http_code)
