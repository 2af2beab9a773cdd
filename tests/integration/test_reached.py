"""How the real command reaches its sources over TLS: by the authorities of one source, or of the whole process."""

import ssl
from pathlib import Path

from tests.commands import lookout
from tests.integration.authority import Authority
from tests.integration.planted import a_listener

UNDERSTOOD = "not as the protocol has it (no JSON-RPC answer)"


def test_probe_trusts_the_authority_of_a_source_and_otherwise_that_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    authority, stranger = Authority(tmp_path / "etc"), Authority(tmp_path / "etc")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.vouch("127.0.0.1", days=1))
    ways = {"own": authority.path.name, "none": "", "other": stranger.path.name}
    with a_listener(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", tls) as url:
        rpc = (f'{{url = "{url}/{name}", name = "{name}", ca_file = "{file}"}}' for name, file in ways.items())
        (tmp_path / "etc" / "lookout.toml").write_text(f"[[chains]]\nid = 1\nrpc = [{', '.join(rpc)}]\n")

        def answers(**environment: str) -> list[bool]:
            probed = lookout(tmp_path, "probe", "-c", "etc/lookout.toml", environment={"COLUMNS": "200", **environment})
            rows = [next(line for line in probed.stdout.splitlines() if f"{name} of Ethereum" in line) for name in ways]
            assert all(UNDERSTOOD in row or "no secure connection (unknown authority)" in row for row in rows), (
                probed.stdout + probed.stderr
            )
            return [UNDERSTOOD in row for row in rows]

        assert answers() == [True, False, False]
        assert answers(SSL_CERT_FILE=str(authority.path)) == [True, True, False]
