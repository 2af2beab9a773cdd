"""The command that tries alerts."""

import time
from pathlib import Path

import click

from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of, show_status
from lookout.config.file import read_sending_config
from lookout.config.settings import around_of
from lookout.features.alerts.alerts import Alerts
from lookout.features.alerts.messages import Message, write_sample
from lookout.features.alerts.sender import NotAcceptedError, open_sender
from lookout.features.alerts.settings import build_policy


@click.group()
def alerts() -> None:
    """Try the alert messages."""


@alerts.command(short_help="Send a sample to each target now.")
@config_option
@click.option("--target", metavar="NAME", help="Send only to this target of [alerts.targets].")
def test(config: Path, target: str | None) -> None:
    """Send a sample to each target now, and say whether it was accepted; exit code 1 if any was not."""
    settings = settings_of(config, read_sending_config)
    policy = build_policy(settings.table_of(Alerts), around_of(settings))
    targets = policy.targets
    if not targets:
        fail(f"{config}: alerts.targets: there is no target; add [alerts.targets] and [[alerts.rules]]")
    if target is not None and target not in targets:
        fail(f"--target: no target in [alerts.targets] has this name; there is {', '.join(targets)}")
    chosen = targets if target is None else {target: targets[target]}
    sample = write_sample(policy.deployment)
    accepted = [_send_sample(name, address, sample) for name, address in chosen.items()]
    if not all(accepted):
        raise SystemExit(NOT_FINE)


def _send_sample(name: str, address: str, sample: Message) -> bool:
    began_s = time.monotonic()
    with show_status(f"sending to {name}"):
        try:
            open_sender(address)(sample)
        except NotAcceptedError as error:
            outcome, why = "not accepted", f"; {str(error) or 'apprise -v -b test ADDRESS says why'}"
        else:
            outcome, why = "accepted", ""
    click.echo(f"{name}: {outcome} after {time.monotonic() - began_s:.1f} s{why}")
    return not why
