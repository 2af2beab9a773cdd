"""The targets of alerts: how a message reaches them, or does not, and the thread that sends it, which is none."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lookout.features.alerts.messages import Message as Sent
from lookout.features.alerts.sender import NotAcceptedError, Sender
from tests.simulation.worlds.scene import Heard, Life, Message, Scene, Sending, Tried


def open_sender(scene: Scene, life: Life, target: str) -> Sender:
    """To one target, which does with a message what the script says."""

    def send(sent: Sent, /) -> None:
        life.sent = message = Message(target, sent.title, sent.body, sent.event)
        fails = scene.active("send-fails", target)
        answers = not scene.active("send-unanswered", target)
        scene.note(f"{life.name} sends {target} {sent.title}: {'no' if fails else 'yes'}{'' if answers else '?'}")
        scene.emit(Tried(life, message, accepted=not fails, answers=answers))
        if fails and fails.size:
            raise RuntimeError("a bug")
        if fails or not answers:
            raise NotAcceptedError

    return send


@contextmanager
def sending_thread(scene: Scene, life: Life, name: str) -> "Iterator[SendingThread]":
    """What sends to a target; RuntimeError while the system gives it no thread."""
    if scene.active("no-thread", name.removeprefix("alert ")):
        scene.note(f"{life.name} finds no thread to {name}")
        raise RuntimeError("can't start new thread")
    yield SendingThread(scene, life, name)


class SendingThread:
    """Sends to one target, one message after the other; it stands still while sending hangs, before it or after it."""

    def __init__(self, scene: Scene, life: Life, name: str) -> None:
        self._scene = scene
        self._life = life
        self._target = name.removeprefix("alert ")
        self._chance = scene.chance(f"tell {self._target} {life.serial}")  # its old name: seeds keep their worlds

    async def call(self, work: Callable[[], None], /) -> None:
        self._scene.emit(Sending(self._life, self._target))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scene.loop.call_later(self._takes_s(), self._make, work, done)
        await done

    def _make(self, work: Callable[[], None], done: "asyncio.Future[None]") -> None:
        hang = self._scene.active("send-hangs", self._target)
        if hang is not None and not hang.size:
            self._scene.loop.call_later((hang.at_ms + hang.lasts_ms - self._scene.ms) / 1000, self._make, work, done)
            return
        error = self._life.sent = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001  it is the waiting one's
            error = raised
        takes_s = self._takes_s() if hang is None else (hang.at_ms + hang.lasts_ms - self._scene.ms) / 1000
        self._scene.loop.call_later(takes_s, self._finish, self._life.sent, error, done)

    def _finish(self, sent: Message | None, error: Exception | None, done: "asyncio.Future[None]") -> None:
        if done.cancelled():
            return
        self._scene.emit(Heard(self._life, self._target, sent, accepted=error is None))
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def _takes_s(self) -> float:
        """Mostly quick, at times as long as a bad connection."""
        return (5 + int(8_000 * self._chance.random() ** 10)) / 1000
