"""Values that must not be shown: secrets and the store's address are hidden, API keys are stored as digests only.
Messages of ValueError never hold the value."""

import hashlib
import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

FINGERPRINT = 4  # hex digits of a key's SHA-256: enough to distinguish keys, too few to find one by brute force

_REDIS = re.compile(r"(rediss?|unix)://.")
_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})")


class ClientId(str):
    """An application's client id. Not a secret, but it may be read from the same places."""


class Secret:
    """Text that is hidden from repr, logs and tracebacks; only `reveal` returns it. Raises ValueError for a text that
    has not the `form` of its class, with what is `wrong`."""

    form, wrong = re.compile(r"(?s).*"), ""

    def __init__(self, text: str) -> None:
        if not self.form.fullmatch(text):
            raise ValueError(self.wrong)
        self._text = text

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"

    # Not in constant time: secrets are compared at start only, keys of clients are looked up by digest.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def reveal(self) -> str:
        return self._text


class OperatorsToken(Secret):
    """Token of the operators' port: nothing but its length stops guessing."""

    form, wrong = re.compile(r"(?s).{16,}"), "is shorter than 16 characters; make one with: openssl rand -base64 24"


class StoreUrl(Secret):
    """Address of the store: `memory:`, `sqlite:PATH` or a Redis URL, which may contain a password."""

    @classmethod
    def parse(cls, text: str, config_file: Path, environ: Mapping[str, str], without_tls: bool = False) -> "StoreUrl":
        """Parse the setting `store`, an address on another machine only with TLS or if it may be `without_tls`. Paths
        are from the configuration file; without one, the file is in systemd's state directory or beside that, and has
        its name. Raises ValueError."""
        shown = cls(text).shown
        if shown.startswith("redis://") and not (without_tls or is_loopback(urlsplit(shown).hostname or "localhost")):
            raise ValueError(f"{shown} is reached without TLS; use rediss://, or set store_without_tls: true")
        if text == "memory:" or _REDIS.match(text):
            return cls(text)
        scheme, separator, path = text.partition(":")
        if scheme != "sqlite" or (separator and not path):
            raise ValueError("is none of memory:, sqlite, sqlite:PATH, redis://…, rediss://… and unix://…")
        folder = environ.get("STATE_DIRECTORY", "").partition(":")[0] or config_file.parent
        own = Path(folder, config_file.name).with_suffix(".sqlite")
        return cls(f"sqlite:{(config_file.parent / Path(path).expanduser() if path else own).absolute()}")

    @property
    def file(self) -> Path | None:
        """The file of an SQLite store; None for another store."""
        scheme, _, path = self.reveal().partition(":")
        return Path(path) if scheme == "sqlite" else None

    @property
    def shown(self) -> str:
        """The address without user name, password, query and fragment; only the scheme if they are unclear."""
        scheme, separator, after_scheme = self.reveal().partition("://")
        authority, *query = re.split(r"[?#]", after_scheme, maxsplit=1)
        # A password that contains ? or # without encoding: where it ends is unknown.
        if query and "@" in query[0]:
            return scheme
        return f"{scheme}{separator}{authority.rpartition('@')[2]}" if separator else scheme


class ProxyAddress(Secret):
    """Address of the proxy for outgoing requests. Hidden, because it may contain name and password."""

    form = re.compile(r"http://([^\s/@?#:]+(:[^\s/@?#]*)?@)?(\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]]+)(:\d{1,5})?/?")
    wrong = "is not http://HOST:PORT or http://NAME:PASSWORD@HOST:PORT"


class Network(str):
    """Address or network, IPv4 or IPv6, as parsed by `ipaddress`."""

    def __new__(cls, text: str) -> "Network":
        try:
            return super().__new__(cls, ipaddress.ip_network(text))
        except ValueError:
            raise ValueError("is not an address or network, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32") from None


class File(str):
    """Path of a file that was readable when the configuration was loaded."""


class Digest(Secret):
    """SHA-256 of an API key, by which it is looked up. Hidden, too: v3 keys are short enough to be found by it."""


def digest(apikey: str) -> Digest:
    """Return the digest of a plain API key from the file."""
    return Digest(hex_digest(apikey))


def hex_digest(text: str) -> str:
    """Return the digest of a plain API key from a client, of a client id, or of another text."""
    # A client may send bytes that are not UTF-8, which decode to surrogates: a wrong key, not an error.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def apikey(text: str) -> Digest:
    """Parse an entry of `apikeys`: plain, or `sha256:` and 64 hex digits."""
    if hashed := _SHA256.fullmatch(text):
        return Digest(hashed[1].lower())
    # A digest with a typing error would otherwise become a key that nobody has.
    if text.lower().startswith("sha256:"):
        raise ValueError("is not sha256:, in small letters, with 64 hex digits after it")
    # Else the words "env:NAME" would silently become the key itself.
    if text.startswith(("env:", "file:")):
        raise ValueError("is read from nowhere else: an API key is plain or sha256: with 64 hex digits")
    if not text.strip():
        raise ValueError("is empty")
    return digest(text)


def resolve(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return the text, or the stripped content of `env:NAME` or `file:PATH`, from a `folder`. Raises ValueError."""
    kind, separator, name = text.partition(":")
    origins = {"env": f"the environment variable {name or '(no name)'} ", "file": f"the file {folder / name} "}
    origin = origins.get(kind, "") if separator else ""
    try:
        if origin:
            text = (environ[name] if kind == "env" else (folder / name).read_text(encoding="utf-8")).strip()
    except KeyError:
        raise ValueError(f"{origin}is not set") from None
    except UnicodeDecodeError:
        raise ValueError(f"{origin}is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"{origin}cannot be read: {error.strerror}") from None
    if not text.strip():
        raise ValueError(f"{origin}is empty")
    return text


def is_loopback(host: str) -> bool:
    """Return whether a host name stands for the machine that uses it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
