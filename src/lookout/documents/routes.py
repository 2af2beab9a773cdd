"""Where the two documents are served."""


def paths(protocol: str) -> tuple[str, str]:
    """Where the live report and the history are (A1)."""
    return f"/api/v1/{protocol}/liveness", f"/api/v1/{protocol}/liveness/history"
