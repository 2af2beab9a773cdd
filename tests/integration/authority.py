"""Certificates for servers over TLS."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Somebody who vouches for names; its own certificate is at ``path``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._number = x509.random_serial_number()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {self._number}")])
        self.path = folder / f"{self._number}.pem"
        unlimited = x509.BasicConstraints(ca=True, path_length=None)
        self.path.write_bytes(_encode(self._sign(self._name, self._key, unlimited, days=1)))

    def vouch(self, address: str, *names: str, days: int) -> Path:
        """A certificate for an address, and perhaps for names, with its key, for as many days to come."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)), *map(x509.DNSName, names)])
        path = self._folder / f"{address}-{days}-{self._number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(_encode(self._sign(x509.Name([]), key, name, days)) + private)
        return path

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType, days: int
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=9)).not_valid_after(now + timedelta(days=days))
        return builder.add_extension(extension, critical=True).sign(self._key, hashes.SHA256())


def _encode(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
