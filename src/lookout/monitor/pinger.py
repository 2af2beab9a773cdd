"""Pings an address regularly while the monitor runs: a dead-man's switch.

Only a monitor that stores publications pings: neither a standby, nor a monitor whose store fails, nor one that cannot
ask because a local resource ran out. Its rows age, and it could send no other message either (M17).
"""

import asyncio
from dataclasses import replace
from typing import Final

from lookout.base.logger import get_logger
from lookout.config.tables import PingTable
from lookout.core.plan import Limits
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session

TIMEOUT_S: Final = 10.0
_TRY_EVERY_S: Final = 1.0

log = get_logger()


class Pinger:
    def __init__(self, ping: PingTable, limits: Limits, instruments: Instruments) -> None:
        self._ping = ping
        self._max_age_s = 2 * limits.heartbeat_ms / 1000
        self._recheck_ms = limits.recheck_ms
        self._instruments = instruments
        self._failing = False

    async def run(self, session: Session) -> None:
        """Ping, until cancelled; end at once if no address is configured."""
        if not self._ping.url:
            return
        session = replace(session, timeout_s=TIMEOUT_S)
        while True:
            began_s = asyncio.get_running_loop().time()
            wait_s = await self._ping_if_alive(session)
            await asyncio.sleep(max(0, began_s + wait_s - asyncio.get_running_loop().time()))

    async def _ping_if_alive(self, session: Session) -> float:
        """Ping; return the time from the beginning of this ping to the next."""
        is_alive = self._instruments.readiness(self._max_age_s).ready
        if not is_alive or self._instruments.is_exhausted(self._recheck_ms):
            return _TRY_EVERY_S
        await self._send(session)
        return self._ping.every_s

    async def _send(self, session: Session) -> None:
        try:
            await session.fetch(Request("GET", self._ping.url))
        except ProbeFailed as failure:
            # Other codes, such as 202 or 204, are as good as 200.
            if failure.code is None or not 200 <= failure.code < 300:
                self._instruments.count_ping("failed")
                if not self._failing:
                    log.error("the ping fails; trying again at its interval", error=str(failure))
                self._failing = True
                return
        except OwnFault as fault:
            self._instruments.count_ping("failed")
            self._instruments.count_own_fault(fault.lacking)
            return
        except Exception:  # a bug must not end the monitor
            self._instruments.count_ping("failed")
            log.exception("the ping crashed; trying again at its interval")
            return
        self._instruments.count_ping("answered")
        if self._failing:
            log.info("the ping works again")
        self._failing = False
