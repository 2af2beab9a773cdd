"""Receivers of messages: a real SMTP server, and HTTP receivers that can be out of order."""

import email
import email.policy
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.integration.served import a_free_port
from tests.web import Answering, serving

Mood = Literal["accept", "500", "hang"]


class Message(NamedTuple):
    title: str
    body: str
    event: dict[str, Any] | None = None  # of a webhook: the same as data


class Receiver:
    """What arrived, and where."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.accepted: list[Message] = []
        self.asked: list[str] = []  # paths, also of what was not accepted
        self.mood: Mood = "accept"

    @property
    def titles(self) -> list[str]:
        return [message.title for message in self.accepted]

    def items(self) -> list[dict[str, Any]]:
        """What every webhook's data lists."""
        return [item for message in self.accepted if message.event for item in message.event["items"]]

    def listed(self) -> Counter[tuple[str, str]]:
        """How many times each check was listed under each heading, in all messages."""
        found: Counter[tuple[str, str]] = Counter()
        for message in self.accepted:
            heading = ""
            for line in message.body.splitlines():
                if line.endswith(":") and not line.startswith("- "):
                    heading = line.removesuffix(":").partition(" (")[0]
                elif line.startswith("- "):
                    found[heading, line[2:].partition(":")[0]] += 1
        return found


@contextmanager
def a_mailbox(**options: Any) -> Iterator[Receiver]:
    """An SMTP server meanwhile, with these options of aiosmtpd; its address is as Apprise has it."""
    port = a_free_port()
    box = Receiver(f"mailto://127.0.0.1:{port}?from=lookout@example.org&to=ops@example.org&mode=insecure")

    class Keeping:
        async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
            assert isinstance(envelope.content, bytes)
            mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
            text = mail.get_body(("plain",))
            assert text is not None
            box.accepted.append(Message(mail["Subject"], text.get_content().replace("\r\n", "\n").strip()))
            return "250 OK"

    server = Controller(Keeping(), hostname="127.0.0.1", port=port, **options)
    server.start()
    try:
        yield box
    finally:
        server.stop()


@contextmanager
def a_hook(secret: str = "") -> Iterator[Receiver]:
    """An HTTP receiver meanwhile: of what Apprise posts to ``json://``, and of anything that is asked by GET."""
    ended = threading.Event()

    class Handler(Answering):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(Message(sent["title"], sent["message"], sent.get("lookout")))

        def do_GET(self) -> None:
            self.answer(None)

        def answer(self, message: Message | None) -> None:
            mood = hook.mood  # before anybody may see that it was asked, and change it
            hook.asked.append(self.path)
            if mood == "hang":
                ended.wait(60)
                return
            if mood == "accept" and message is not None:
                hook.accepted.append(message)
            self.send(200 if mood == "accept" else 500)

    with serving(Handler) as base:
        hook = Receiver(f"{base.replace('http', 'json')}/{secret}")
        try:
            yield hook
        finally:
            ended.set()
