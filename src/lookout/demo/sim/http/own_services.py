"""Services that operators may declare: an ERC-4337 bundler, and a relayer with a JSON status."""

from typing import Final

from lookout.demo.sim.http.jsonrpc import CallError, answer_calls
from lookout.demo.sim.http.reply import UpstreamReply, json_reply
from lookout.demo.sim.http.upstream import Asked, Upstream

_ENTRY_POINTS: Final = ("0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789", "0x0000000071727De22E5E9d8BAf0efAc6f37da032")


def _bundler_reply(asked: Asked) -> UpstreamReply:
    def call(method: str, _params: object) -> object:
        match method:
            case "eth_chainId":
                return hex(asked.upstreams.head(asked.address, asked.at).chain_id)
            case "eth_supportedEntryPoints":
                return [] if asked.upstreams.has(asked.address, "no-entry-point", asked.at) else _ENTRY_POINTS
            case _:
                raise CallError(-32601, f"Method {method} not supported")

    return answer_calls(asked.body, call)


def _relayer_reply(asked: Asked) -> UpstreamReply:
    status = "paused" if asked.upstreams.has(asked.address, "paused", asked.at) else "ok"
    return json_reply({"status": status, "wallets": 3})


BUNDLER: Final = Upstream("POST", "/bundler/{chain}", "bundler/{chain}", _bundler_reply)
RELAYER: Final = Upstream("GET", "/relayer", "relayer", _relayer_reply)
