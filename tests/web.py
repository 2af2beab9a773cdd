"""A web server in a thread, of a class that answers."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Answering(BaseHTTPRequestHandler):
    def send(self, code: int, body: bytes = b"", **headers: str) -> None:
        """``Content_Type`` stands for Content-Type."""
        self.send_response(code)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silence."""


@contextmanager
def serving(handler: type[Answering], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Its base address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
