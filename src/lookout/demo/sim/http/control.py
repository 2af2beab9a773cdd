"""The control route: orders come in as JSON, and what is set and what can be goes out."""

import json

from lookout.demo.sim.faults import FAULT_KINDS, ActiveFault, OrderError, parse_order
from lookout.demo.sim.http.reply import Reply, json_reply
from lookout.demo.sim.upstreams import Upstreams


def order_reply(body: bytes, upstreams: Upstreams, at: int) -> Reply:
    """Apply an order and list what is set now; or refuse it, changing nothing."""
    try:
        order = parse_order(json.loads(body), upstreams.subjects)
    except OrderError as problem:
        return json_reply({"error": str(problem)}, 400)
    except ValueError as problem:
        return json_reply({"error": f"the body is not JSON: {problem}"}, 400)
    upstreams.apply(order, at)
    return json_reply({"set": _set(upstreams, at)})


def overview_reply(upstreams: Upstreams, at: int) -> Reply:
    """What is set, and every fault with its meaning."""
    return json_reply({"set": _set(upstreams, at), "faults": {name: _description(name) for name in FAULT_KINDS}})


def _set(upstreams: Upstreams, at: int) -> list[dict[str, object]]:
    return [_order(active) for active in upstreams.set_at(at)]


def _order(active: ActiveFault) -> dict[str, object]:
    """What would set this fault again."""
    order: dict[str, object] = {"target": active.target, "fault": active.fault.name}
    parameter = FAULT_KINDS[active.fault.name].parameter
    return order if parameter is None else order | {parameter.name: active.fault.size}


def _description(name: str) -> dict[str, object]:
    kind = FAULT_KINDS[name]
    described: dict[str, object] = {"explanation": kind.explanation, "appliesTo": kind.applies_to}
    return described if kind.parameter is None else described | {"parameter": kind.parameter._asdict()}
