"""Attacking indexers beside honest sources, as real processes, each for more than a minute: how long the monitor's loop
was held, its memory, its store, how old honest rows became, and what was said."""

import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from lookout.base.sockets import a_free_port
from lookout.store.sqlite import read_snapshot
from tests.commands import lookout
from tests.fuzz.attackers import ATTACKS, CONFIRMED
from tests.fuzz.floods import Seen, a_monitor, judge, longest_hold_s
from tests.integration.fast import a_config
from tests.integration.receivers import Receiver, a_hook
from tests.stores import read_texts

_log: Final = logging.getLogger("campaign.hostile")
_ROOT: Final = Path(__file__).parents[2]
_LONGEST_BODY: Final = 4_096
_SECONDS: Final = 80
"""A break is confirmed when it was found again after a minute."""
# What no attacker's words may bring anywhere: a control character, however it is written, or a line of its own.
_STRANGE: Final = re.compile(r"\x1b|\\u001b|\\x1b|curl|z{300}")


class Heard(NamedTuple):
    """What came of a monitor's minute."""

    seen: Seen
    texts: dict[str, str]
    """What was logged, alerted, shown and stored, by where."""
    longest_alert: int


def try_all() -> tuple[int, list[str]]:
    """How many attacks were tried, and what went wrong."""
    rest, failures = live_beside(None), []
    hold_s = longest_hold_s() + rest.seen.held_s  # others may compute here too
    for name in ATTACKS:
        attacked = live_beside(name)
        _log.info(f"{name}: {attacked.seen}, longest alert {attacked.longest_alert:,}; at rest {rest.seen}")
        failures += [f"{name}: {failure}" for failure in find_failures(rest, attacked, hold_s)]
        if name in CONFIRMED and not attacked.longest_alert:
            failures.append(f"{name}: no alert came, so nothing is known of its words")
    return len(ATTACKS), failures


def find_failures(rest: Heard, attacked: Heard, hold_s: float) -> Iterator[str]:
    yield from judge(attacked.seen, rest.seen, hold_s)
    if attacked.longest_alert > _LONGEST_BODY:
        yield f"an alert has {attacked.longest_alert:,} bytes"
    for where, text in attacked.texts.items():
        if found := _STRANGE.search(text):
            yield f"{where} has an attacker's words: {text[max(0, found.start() - 80) : found.end() + 80]!r}"


def live_beside(attack: str | None, seconds: float = _SECONDS) -> Heard:
    """Let a monitor watch the simulated upstreams, of which one indexer attacks."""
    base = f"http://127.0.0.1:{a_free_port()}"
    with tempfile.TemporaryDirectory() as made, a_hook() as hook, _attackers(base) as attackers:
        folder, address = Path(made), None if attack is None else f"{attackers}/{attack}/1"
        with a_monitor(folder, base, _configure(base, address, hook), ("indexer", 1)) as monitor:
            seen = monitor.observe(seconds)
            shown = monitor.ask("/sources").decode()
            probed = lookout(folder, "probe", "-c", "lookout.toml", within_s=60)
        alerts = [f"{message.title}\n{message.body}" for message in hook.accepted]
        snapshot = read_snapshot(folder / "lookout.db")
        published = (snapshot.documents[name].body.decode() for name in ("live", "history", "about"))
        texts = {
            "the log": (folder / "monitor.log").read_text(),
            "an alert": "\n".join(alerts),
            "/sources": shown,
            "lookout probe": probed.stdout + probed.stderr,
            "the store": "\n".join((*read_texts(snapshot.state), *published)),
        }
        return Heard(seen, texts, max((len(message.body.encode()) for message in hook.accepted), default=0))


def _configure(base: str, attacker: str | None, hook: Receiver) -> str:
    honest = f'url = "{base}/squid/1/graphql"\nconfirmations = 5\n'
    asked = honest if attacker is None else honest.replace(f"{base}/squid/1/graphql", attacker)
    alerts = f'[alerts]\ngroup_s = 0\ntargets = {{ops = "{hook.address}"}}\n'
    alerts += '[[alerts.rules]]\nfrom = "degraded"\nfor_s = 0\n'
    return a_config(base).replace(honest, f"{asked}links = {{}}\n") + alerts


@contextmanager
def _attackers(base: str) -> Iterator[str]:
    """Their process meanwhile, and their address."""
    command = (sys.executable, "-m", "tests.fuzz.attackers", base)
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()
