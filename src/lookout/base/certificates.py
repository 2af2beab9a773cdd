"""Certificate authorities that replace the system's."""

import re
import ssl
from functools import lru_cache
from typing import Final

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def extract_certificates(pem: bytes) -> str:
    """The certificates in a PEM file, without other content, such as a private key. ValueError says what is wrong with
    the file."""
    certificates = "\n".join(_CERTIFICATE.findall(pem.decode("ascii", "ignore")))
    if not certificates:
        raise ValueError("holds no certificate; it has to be a PEM file")
    try:
        trust_only(certificates)
    except ssl.SSLError:
        raise ValueError("holds a certificate that cannot be read") from None
    return certificates


@lru_cache(maxsize=256)
def trust_only(certificates: str) -> ssl.SSLContext:
    """The same object for the same certificates: connections are shared by it, and it takes milliseconds to build."""
    context = ssl.create_default_context(cadata=certificates)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # so that the server's own certificate suffices, as for curl
    context.set_alpn_protocols(("http/1.1",))
    return context
