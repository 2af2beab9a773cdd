"""The chains that wallets use most, with name, approximate block time, and whether they are test networks.

A chain's pace begins with the block time, until it is measured (S15).
"""

import difflib
from typing import Final, NamedTuple


class KnownChain(NamedTuple):
    name: str
    block_time_s: float
    test_network: bool = False


KNOWN_CHAINS: Final = {
    1: KnownChain("Ethereum", 12),
    10: KnownChain("OP Mainnet", 2),
    56: KnownChain("BNB Smart Chain", 0.45),
    100: KnownChain("Gnosis", 5),
    130: KnownChain("Unichain", 1),
    137: KnownChain("Polygon", 1.75),
    143: KnownChain("Monad", 0.4),
    146: KnownChain("Sonic", 0.4),
    252: KnownChain("Fraxtal", 2),
    324: KnownChain("ZKsync Era", 1),
    480: KnownChain("World Chain", 2),
    999: KnownChain("HyperEVM", 1),
    1135: KnownChain("Lisk", 2),
    1284: KnownChain("Moonbeam", 6),
    1329: KnownChain("Sei", 0.4),
    1868: KnownChain("Soneium", 2),
    2020: KnownChain("Ronin", 3),
    5000: KnownChain("Mantle", 2),
    8217: KnownChain("Kaia", 1),
    8453: KnownChain("Base", 2),
    34443: KnownChain("Mode", 2),
    42161: KnownChain("Arbitrum One", 0.25),
    42220: KnownChain("Celo", 1),
    43114: KnownChain("Avalanche", 1.5),
    57073: KnownChain("Ink", 1),
    59144: KnownChain("Linea", 2),
    80094: KnownChain("Berachain", 2),
    81457: KnownChain("Blast", 2),
    534352: KnownChain("Scroll", 3),
    7777777: KnownChain("Zora", 2),
    97: KnownChain("BNB Smart Chain Testnet", 0.45, test_network=True),
    10200: KnownChain("Chiado", 5, test_network=True),
    17000: KnownChain("Holesky", 12, test_network=True),
    43113: KnownChain("Avalanche Fuji", 1.5, test_network=True),
    59141: KnownChain("Linea Sepolia", 2, test_network=True),
    80002: KnownChain("Polygon Amoy", 2, test_network=True),
    84532: KnownChain("Base Sepolia", 2, test_network=True),
    421614: KnownChain("Arbitrum Sepolia", 0.25, test_network=True),
    534351: KnownChain("Scroll Sepolia", 3, test_network=True),
    560048: KnownChain("Hoodi", 12, test_network=True),
    11155111: KnownChain("Sepolia", 12, test_network=True),
    11155420: KnownChain("OP Sepolia", 2, test_network=True),
}


_ALSO_CALLED: Final = {
    "mainnet": 1,
    "eth": 1,
    "optimism": 10,
    "op": 10,
    "bsc": 56,
    "binance": 56,
    "bnb chain": 56,
    "xdai": 100,
    "matic": 137,
    "worldchain": 480,
    "hyperliquid": 999,
    "klaytn": 8217,
    "arb": 42161,
    "avax": 43114,
    "fuji": 43113,
    "amoy": 80002,
    "optimism sepolia": 11155420,
}
_NAMES: Final = {known.name.casefold(): chain_id for chain_id, known in KNOWN_CHAINS.items()} | _ALSO_CALLED


def find_chain(text: str) -> int | None:
    """The id of the known chain with this name, or whose name begins with it. "arbitrum" is Arbitrum One: main networks
    come before test networks."""
    wanted = text.casefold()
    exact = [_NAMES[wanted]] if wanted in _NAMES else []
    begins = [chain_id for name, chain_id in _NAMES.items() if name.startswith(f"{wanted} ")]
    main = [chain_id for chain_id in begins if not KNOWN_CHAINS[chain_id].test_network]
    return next((found[0] for found in (exact, main, begins) if len(set(found)) == 1), None)


def suggest_chain(text: str) -> str | None:
    """The known chain's name most similar to the text."""
    near = difflib.get_close_matches(text.casefold(), _NAMES, 1)
    return KNOWN_CHAINS[_NAMES[near[0]]].name if near else None
