"""Long work in the event loop, cut into turns."""

import asyncio
from typing import Final

_TURN_S: Final = 0.005


class Turns:
    """Lets the others of the event loop go on whenever a turn's time is used up (M6)."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()

    async def end_if_over(self) -> None:
        """To be called between the parts of the work, each of which is short."""
        if self._loop.time() - self._began_s >= _TURN_S:
            await asyncio.sleep(0)
            self._began_s = self._loop.time()
