"""How fast a day is lived: the settings that make its chapters long or short, and what its script waits for."""

from typing import Final, NamedTuple

from tests.integration.fast import a_config

LONGEST_PAUSE_S: Final = 22.0  # between two announcements of a simulated broadcaster


class Scale(NamedTuple):
    """The history's settings, the cadence, and the script's own times."""

    bucket_s: int
    counts_from_s: float
    hold_s: float
    recheck_s: float
    backoff_cap_s: float
    probe_timeout_s: float
    heartbeat_s: float
    ppoi_behind_s: float
    fresh_s: float
    seen_s: float
    limit: int
    """Requests a minute that one caller may make of the server that is flooded: more than its reader does."""
    settle_s: float
    """How long rows may be on their way after something was set or cleared. It is the tolerance of all that follows."""
    lasting_s: float
    """How long a fault is shown at the least: longer than counts."""
    apart_s: float
    """Between one fault and the next."""
    pause_s: float
    """How long the script watches nothing happen."""
    aligned: bool
    """Whether chapters wait for the next bucket, so that what is expected is one character."""

    def policy(self) -> dict[str, float]:
        return {
            "recheck_s": self.recheck_s,
            "jitter_s": self.recheck_s / 5,
            "backoff_cap_s": self.backoff_cap_s,
            "probe_timeout_s": self.probe_timeout_s,
            "heartbeat_s": self.heartbeat_s,
            "ppoi_behind_s": self.ppoi_behind_s,
        }


# Everything that shows in the documents is as at the launch.
LAUNCH: Final = Scale(300, 60, 60, 2, 4, 5, 3, 45, 120, 600, 1_000, 40, 80, 4, 15, aligned=True)
SHORT: Final = Scale(5, 1, 20, 0.3, 0.6, 1.3, 1, 6, 32, 150, 700, 8, 2, 0.1, 2, aligned=False)


def configuration(scale: Scale, upstreams: str, url: str, port: int, limit: int) -> str:
    """Of a monitor or of a server; a port is for a server alone."""
    text = a_config(upstreams, "store", "squid", **scale.policy()).replace("sqlite:lookout.db", url)
    text = text.replace("seen_s = 150\n", f"seen_s = {scale.seen_s}\nfresh_s = {scale.fresh_s}\n")
    server = f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = {limit}\n'
    history = f"bucket_s = {scale.bucket_s}\ncounts_from_s = {scale.counts_from_s}\nhold_s = {scale.hold_s}\n"
    return f"{text}{history}{server}"
