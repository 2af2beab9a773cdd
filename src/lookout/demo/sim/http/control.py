"""The control route: orders come in as JSON, and what is set and what can be goes out."""

import json

from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.faults import ORDERED, Fault
from lookout.demo.sim.http.reply import UpstreamReply, json_reply
from lookout.demo.sim.orders import OrderError, parse_order
from lookout.demo.sim.upstreams import Upstreams


def order_reply(body: bytes, upstreams: Upstreams, at: int) -> UpstreamReply:
    """Apply an order and list what is set now; or refuse it, changing nothing."""
    try:
        order = parse_order(json.loads(body), upstreams.addresses)
    except OrderError as problem:
        return json_reply({"error": str(problem)}, 400)
    except ValueError as problem:
        return json_reply({"error": f"the body is not JSON: {problem}"}, 400)
    upstreams.apply(order, at)
    return json_reply({"set": _set(upstreams, at)})


def overview_reply(upstreams: Upstreams, at: int) -> UpstreamReply:
    """What is set, and every fault that can be."""
    faults = {name: _describe(fault) for name, fault in ORDERED.items()}
    return json_reply({"set": _set(upstreams, at), "faults": faults})


def _set(upstreams: Upstreams, at: int) -> list[dict[str, object]]:
    return [_order(episode) for episode in upstreams.set_at(at)]


def _order(episode: FaultEpisode) -> dict[str, object]:
    """What would set this fault again."""
    order: dict[str, object] = {"target": episode.subject, "fault": episode.kind}
    parameter = ORDERED[episode.kind].parameter
    return order if parameter is None else order | {parameter.name: episode.size // parameter.unit}


def _describe(fault: Fault) -> dict[str, object]:
    described: dict[str, object] = {"explanation": fault.explanation, "appliesTo": fault.applies_to}
    if fault.parameter is None:
        return described
    name, default, lowest, highest, _ = fault.parameter
    return described | {"parameter": {"name": name, "default": default, "lowest": lowest, "highest": highest}}
