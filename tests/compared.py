"""Configurations whose indexers' lists are compared with their chain, on simulated upstreams."""

from lookout.demo.sim.chain import CONTRACT, EVENT

QUERY = (
    "query($from: Int!, $to: Int!) { transactions(where: {blockNumber_gte: $from, blockNumber_lte: $to}, limit: 1000)"
    " { transactionHash } }"
)
UPSTREAM = {"indexer": "squid", "hosted-indexer": "hosted"}


def a_compared_config(
    base: str, first_block: int | None, *services: str, more: str = "", policy: str = "", **keys: int
) -> str:
    """Chain 1 with three endpoints, and these services on it, whose lists are compared from this block on, if there is
    one. What is final they have: they are five blocks behind the head."""
    rpc = ", ".join(f'"{base}/rpc/1/{letter}"' for letter in "abc")
    text = '[store]\nurl = "sqlite:lookout.db"\n[log]\nformat = "json"\n[admin]\nmonitor = ""\nserver = ""\n'
    text += f'{more}\n[policy]\n{policy}\n[[chains]]\nid = 1\nname = "one"\nblock_time_s = 12\nrpc = [{rpc}]\n'
    for service in services or ("indexer",):
        url = f"{base}/{UPSTREAM[service]}/1/graphql"
        text += f'[[{service}]]\nchain = 1\nkind = "squid"\nurl = "{url}"\nconfirmations = 12\n'
        if first_block is not None:
            text += f'[{service}.complete]\ncontracts = ["{CONTRACT}"]\nevents = ["{EVENT}"]\n'
            text += f'first_block = {first_block}\nquery = "{QUERY}"\npointer = "/transactions/*/transactionHash"\n'
            text += "".join(f"{key} = {value}\n" for key, value in keys.items())
    return text
