"""The control route: orders come in as JSON, and what is set and what can be goes out."""

import json

from lookout.demo.sim.faults import WAYS, OrderError, Standing, parse_order
from lookout.demo.sim.http.reply import Reply, json_reply
from lookout.demo.sim.upstreams import Upstreams


def order_reply(body: bytes, upstreams: Upstreams, at: int) -> Reply:
    """Follow an order and tell what is set now; or refuse it, changing nothing."""
    try:
        order = parse_order(json.loads(body), upstreams.subjects)
    except OrderError as problem:
        return json_reply({"error": str(problem)}, 400)
    except ValueError as problem:
        return json_reply({"error": f"the body is not JSON: {problem}"}, 400)
    upstreams.follow(order, at)
    return json_reply({"set": _set(upstreams, at)})


def overview_reply(upstreams: Upstreams, at: int) -> Reply:
    """What is set, and every fault with its meaning."""
    return json_reply({"set": _set(upstreams, at), "faults": {name: _told(name) for name in WAYS}})


def _set(upstreams: Upstreams, at: int) -> list[dict[str, object]]:
    return [_order(standing) for standing in upstreams.set_at(at)]


def _order(standing: Standing) -> dict[str, object]:
    """What would set this fault again."""
    order: dict[str, object] = {"target": standing.target, "fault": standing.fault.name}
    parameter = WAYS[standing.fault.name].parameter
    return order if parameter is None else order | {parameter.name: standing.fault.size}


def _told(name: str) -> dict[str, object]:
    way = WAYS[name]
    told: dict[str, object] = {"explanation": way.explanation, "befalls": way.befalls}
    return told if way.parameter is None else told | {"parameter": way.parameter._asdict()}
