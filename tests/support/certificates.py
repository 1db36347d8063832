"""Certificates for tests: a certificate authority, and PEM files that it signs."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
SIGNS = x509.KeyUsage(
    False, False, False, False, False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False
)


class CertificateAuthority:
    """Signs certificates for 127.0.0.1 into `folder`; `ca_file` is its own certificate."""

    def __init__(self, folder: Path, name: str = "the test's own authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._builder(self._name, self._key.public_key()).add_extension(x509.BasicConstraints(True, None), True)
        self.ca_file = self._write("ca.pem", own.add_extension(SIGNS, True).sign(self._key, hashes.SHA256()))

    def issue(self, name: str, passphrase: bytes | None = None, *, end: datetime.datetime = END) -> tuple[Path, Path]:
        """Write a certificate and its key; returns both paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        cert = self._builder(subject, key.public_key(), end).add_extension(address, False)
        signed = cert.sign(self._key, hashes.SHA256())
        key_file = self._folder / f"{name}.key"
        hidden = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        key_file.write_bytes(key.private_bytes(pem, form, hidden))
        return self._write(f"{name}.pem", signed), key_file

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, end: datetime.datetime = END
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
            # OpenSSL's strict verification, the default since Python 3.13, asks for it (RFC 5280 §4.2.1.1).
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )

    def _write(self, name: str, cert: x509.Certificate) -> Path:
        file = self._folder / name
        file.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        return file
