"""``HOST:PORT``, where an IPv6 host stands in brackets."""


def host_and_port(address: str) -> tuple[str, int]:
    """The host without brackets, and the port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def format_host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
