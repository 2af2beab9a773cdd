"""What takes the descriptors of a monitor that runs as a process of its own."""

import resource

from aiohttp import web

from lookout.demo.sim.server import UpstreamFront


class Closing(UpstreamFront):
    """Upstreams that close each connection after an answer, as if there were more time between two probes: each needs a
    descriptor."""

    def put_before(self, application: web.Application) -> None:
        async def close(_request: web.Request, response: web.StreamResponse) -> None:
            response.headers["Connection"] = "close"
            response.force_close()

        application.on_response_prepare.append(close)


def limit(pid: int, descriptors: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors, hard))
