"""The four receivers of docs/operations.md: the real command sends a sample by the page's own addresses.

A proxy leads to a server on this machine instead of to the hosts that Slack and Telegram have, and an authority of our
own vouches for their names: neither Lookout nor Apprise knows the difference.
"""

import asyncio
import json
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.commands import lookout
from tests.contract.protocols.proxies import a_proxy
from tests.contract.protocols.upstreams import Asked, Reply, answering
from tests.integration.authority import Authority
from tests.integration.receivers import a_mailbox

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "operations.md"
HOSTS: Final = ("hooks.example.org", "hooks.slack.com", "api.telegram.org")
SECRETS: Final = {
    "HOOK_TOKEN": "planted-token",
    "SLACK_WEBHOOK": "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    "MAIL_PASSWORD": "planted-password",
    "TELEGRAM_BOT_TOKEN": "123456789:AAplanted-token_0123456789012345678",
    "TELEGRAM_CHAT_ID": "-1001234567890",
}
TITLE: Final = "Lookout (Example wallet): a test"
LINK: Final = "https://status.example.org/"


def answer(request: Asked) -> Reply:
    return 200, b'{"ok": true, "result": {}}' if "/bot" in request.target else b"ok"


def knows(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, found: object) -> AuthResult:
    return AuthResult(success=found == LoginPassword(b"lookout", SECRETS["MAIL_PASSWORD"].encode()))


async def test_a_sample_reaches_each_of_the_four_receivers_of_the_page(tmp_path: Path) -> None:
    (example,) = re.findall(r"### Four receivers.*?```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.vouch("127.0.0.1", *HOSTS, days=1))
    secured = {"tls_context": tls, "require_starttls": True, "authenticator": knows, "auth_required": True}
    async with answering(answer, tls=tls) as (url, asked), a_proxy(url) as (proxy, passed):
        with a_mailbox(**secured) as mail:
            example = example.replace("mail.example.org:587", f"127.0.0.1:{urlsplit(mail.address).port}")
            sources = '[messaging]\nurl = "http://127.0.0.1:9"\n[page]\ntitle = "Example wallet"\n'
            (tmp_path / "lookout.toml").write_text(sources + example)
            ca = {"REQUESTS_CA_BUNDLE": str(authority.path), "SSL_CERT_FILE": str(authority.path)}
            environment = {**SECRETS, **ca, "HTTPS_PROXY": proxy, "NO_PROXY": ""}
            # In a thread, since the servers are on this event loop.
            done = await asyncio.to_thread(
                lookout, tmp_path, "alerts", "test", "-c", "lookout.toml", environment=environment
            )
    outcomes = re.sub(r"\d+\.\d s", "N s", done.stdout).splitlines()
    assert outcomes == [f"{name}: accepted after N s" for name in ("hook", "chat", "mail", "phone")], done.stderr
    assert [each.request.target for each in passed] == [f"{host}:443" for host in HOSTS]
    hook, slack, telegram = asked
    assert (hook.target, hook.headers["authorization"]) == ("/lookout", "Bearer planted-token")
    posted = json.loads(hook.body)
    assert (posted["title"], posted["type"]) == (TITLE, "failure")
    assert posted["lookout"] == {
        "version": 1,
        "kind": "sample",
        "isOver": False,
        "deployment": "Example wallet",
        "operator": "",
        "link": LINK,
        "items": [],
    }
    assert slack.target == urlsplit(SECRETS["SLACK_WEBHOOK"]).path
    assert telegram.target == f"/bot{SECRETS['TELEGRAM_BOT_TOKEN']}/sendMessage"
    assert str(json.loads(telegram.body)["chat_id"]) == SECRETS["TELEGRAM_CHAT_ID"]
    for body in (slack.body.decode(), telegram.body.decode(), *(f"{each.title} {each.body}" for each in mail.accepted)):
        assert TITLE in body
        assert LINK in body
    assert len(mail.accepted) == 1
    assert not [secret for secret in SECRETS.values() if secret in done.stdout + done.stderr]
