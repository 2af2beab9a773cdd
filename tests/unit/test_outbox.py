"""The outbox: which message to try next, and when, without a clock and without tasks."""

import pytest

from lookout.core.model import Check
from lookout.features.alerts.messages import AlertFacts, make_event, make_item
from lookout.features.alerts.outbox import MOST_WAITING, Attempt, Outbox, Queued
from lookout.features.alerts.rules import News, NewsKind
from tests.alerting import THE_FIVE
from tests.builders import NOON
from tests.cases import cases

# What happens, one word each. ``put``: a message to ops, numbered from 0, about a check of its own; ``put-chat``: one
# to chat. ``A+B-``: a message to ops that A began and B ended; ``all``: one that ends all and names no check.
# ``store``: a publication is stored. ``late``: put one during a write, which does not have it.
# ``release``: nothing could be stored for a minute. ``accept`` and ``refuse``: what is to be tried is tried.
# ``apply``: the same targets are configured again. ``old``: what was made by now is given up. ``4s``: time passes,
# without a publication; ``rest``: a target's rest passes, with one.
WAIT_MS = 5_000
KINDS: dict[str, NewsKind] = {"+": "began", "-": "ended"}


def a_message(*news: tuple[str, NewsKind], target: str = "ops", made_ms: int = 0) -> Queued:
    found = (
        News(kind, Check(service, None), "current", "responding", "unavailable", NOON, NOON, 0, (target,))
        for service, kind in news
    )
    items = [make_item(each, AlertFacts(), THE_FIVE) for each in found]
    is_over = all(kind == "ended" for _, kind in news)
    event = make_event("checks", THE_FIVE, items, is_over=is_over)
    return Queued(target, "title", "body", made_ms, is_over, event)


class Play:
    """An outbox, and what was tried with ops: the numbers of the messages."""

    def __init__(self) -> None:
        self.outbox = Outbox({}, 0, WAIT_MS)
        self.now_ms = 1_000
        self.tried: list[int] = []
        self.given_up: list[int] = []

    def do(self, word: str) -> None:
        match word:
            case "put" | "put-chat":
                target, own = word.removeprefix("put-").replace("put", "ops"), str(self.outbox.next_number)
                self.put(a_message((own, "began"), target=target, made_ms=self.now_ms))
            case "late":
                self.outbox.put(a_message((str(self.outbox.next_number), "began"), made_ms=self.now_ms))
            case "release":
                self.outbox.release()
            case "all":
                self.put(a_message(made_ms=self.now_ms))
            case "store":
                self.outbox.mark_stored()
            case "old":
                self.given_up += self.outbox.give_up(self.now_ms)
            case "accept" | "refuse":
                attempt = self.outbox.next("ops", self.now_ms)
                assert isinstance(attempt, Attempt), attempt
                self.tried.append(attempt.number)
                if word == "accept":
                    self.outbox.accept(attempt)
                else:
                    self.outbox.refuse(attempt, self.now_ms)
            case "rest":
                wait = self.outbox.next("ops", self.now_ms)
                assert isinstance(wait, int)
                self.now_ms = wait
            case _ if word.endswith("s"):
                self.now_ms += int(word.removesuffix("s")) * 1_000
            case _:
                news = [(service, KINDS[sign]) for service, sign in zip(word[::2], word[1::2], strict=True)]
                self.put(a_message(*news, made_ms=self.now_ms))

    def put(self, queued: Queued) -> None:
        self.given_up += self.outbox.put(queued)
        self.outbox.mark_storing()

    def step(self) -> int | str:
        """What there is to do now: the number of a message, or how long to wait."""
        step = self.outbox.next("ops", self.now_ms)
        if isinstance(step, Attempt):
            return step.number
        return "nothing" if step is None else f"rests {(step - self.now_ms) // 1_000} s"


def play(script: str) -> Play:
    played = Play()
    for word in script.split():
        played.do(word)
    return played


@pytest.mark.parametrize(("script", "step"), cases("outbox", "the next step is what the past says"))
def test_the_next_step_is_what_the_past_says(script: str, step: int | str) -> None:
    assert play(script).step() == step


@pytest.mark.parametrize(("script", "tried"), cases("outbox", "messages are tried in this order"))
def test_messages_are_tried_in_this_order(script: str, tried: list[int]) -> None:
    assert play(script).tried == tried


@pytest.mark.parametrize(
    ("script", "given_up"),
    [
        pytest.param("A+ 1s B+ old", [0, 1], id="beginnings that are old"),
        pytest.param("A+ old A-", [0], id="none that is younger"),
        pytest.param("A+ store accept A- old", [], id="not the end of what was sent"),
        pytest.param("A+ store accept A-B+ old", [], id="nor if something else begins with it"),
        pytest.param("A+ store accept A- A+ old", [1, 2], id="an end that is not the last word of its check"),
        pytest.param("A+ store accept A- A+ A- old", [1, 2], id="but not the end after it"),
        pytest.param("all old", [0], id="what is about no check"),
        pytest.param("A-" + " put" * MOST_WAITING, [1], id="of too many the oldest beginning, before any end"),
        pytest.param("A-" + " B-" * MOST_WAITING, [1], id="of too many ends one that another followed"),
    ],
)
def test_given_up_are(script: str, given_up: list[int]) -> None:
    assert play(script).given_up == given_up


def test_targets_rest_alone() -> None:
    played = play("put put-chat store refuse")
    assert played.step() == "rests 5 s"
    assert isinstance(played.outbox.next("chat", played.now_ms), Attempt)


def test_asking_for_the_next_step_changes_nothing() -> None:
    played = play("put put store refuse rest")
    assert [played.step() for _ in range(3)] == [1, 1, 1]


def test_of_too_many_messages_to_one_target_the_oldest_are_dropped() -> None:
    played = play("put-chat" + " put" * MOST_WAITING)
    dropped = played.outbox.put(Queued("ops", "one more", "body", 0))
    assert (list(dropped), played.outbox.next_number) == ([1], MOST_WAITING + 2)
    assert len(played.outbox.messages) == MOST_WAITING + 1


def test_messages_to_a_target_that_left_are_removed() -> None:
    played = play("put-chat put store")
    assert list(played.outbox.keep_targets(("chat",))) == [1]
    assert list(played.outbox.messages) == [0]


def test_an_attempt_may_end_after_its_message_was_given_up() -> None:
    played = play("put store")
    attempt = played.outbox.next("ops", played.now_ms)
    assert isinstance(attempt, Attempt)
    played.outbox.give_up(played.now_ms)
    played.outbox.accept(attempt)
    assert played.step() == "nothing"
