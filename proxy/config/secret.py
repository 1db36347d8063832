"""Values that must not be shown: secrets and the store's address are hidden, API keys are stored as digests only.

Made while the configuration is read; the messages of ValueError never hold the value. `exposed` finds the files with
secrets that other users can read.
"""

import hashlib
import ipaddress
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proxy import errors
from proxy.kit import located_yaml

FINGERPRINT = 4  # hex digits of a key's SHA-256: enough to distinguish keys, too few to find one by brute force
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
KNOWN_TO_ALL = "EXAMPLE_KEY"  # in the shipped configuration: not a secret

_SECRET_KEYS = ("client_secret", "token")
_ADDRESS_KEYS = ("store", "proxy")  # secret where they hold a password
_PROXY = re.compile(r"http://([^\s/@?#:]+(:[^\s/@?#]*)?@)?(\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]]+)(:\d{1,5})?/?")
_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})")


class UnresolvedError(ValueError):
    """A reference to an environment variable or a file leads to no value. `code` is the kind of mistake."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ClientId(str):
    """An application's client id. Not a secret, but it may be read from the same places."""

    __slots__ = ()


class Secret:
    """Text that is hidden from repr, logs and tracebacks; only `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    # Not in constant time: secrets are compared at start only, keys of clients are looked up by digest.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def reveal(self) -> str:
        """Return the secret itself, for the request that needs it."""
        return self._text


class StoreUrl(Secret):
    """Address of the store: `memory:`, `sqlite`, `sqlite:PATH` or a Redis URL, which may contain a password."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        """The address without credentials."""
        return without_credentials(self.reveal())

    @property
    def is_readable_on_the_way(self) -> bool:
        """Whether tokens and usage are sent over a network without TLS."""
        return self.reveal().startswith("redis://") and not is_loopback(urlsplit(self.reveal()).hostname or "localhost")


class ProxyAddress(Secret):
    """Address of the proxy for outgoing requests. Hidden, because it may contain name and password."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        if not _PROXY.fullmatch(text):
            raise ValueError("is not http://HOST:PORT or http://NAME:PASSWORD@HOST:PORT")
        super().__init__(text)


class Network(str):
    """Address or network, IPv4 or IPv6, as parsed by `ipaddress`."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Network":
        try:
            return super().__new__(cls, ipaddress.ip_network(text))
        except ValueError:
            raise ValueError("is not an address or network, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32") from None


class File(str):
    """Path of a file that was readable when the configuration was loaded."""

    __slots__ = ()


class Digest:
    """SHA-256 of an API key, by which it is looked up. Hidden, too: v3 keys are short enough for a brute-force
    search."""

    __slots__ = ("_sha256",)

    def __init__(self, sha256: bytes) -> None:
        self._sha256 = sha256

    def __repr__(self) -> str:
        return "Digest(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self._sha256 == other._sha256

    def __hash__(self) -> int:
        return hash(self._sha256)

    def reveal(self) -> str:
        """Return the hex digits, for the store and for the configuration: of a short key they are hardly a secret."""
        return self._sha256.hex()

    @property
    def fingerprint(self) -> str:
        """First digits of the SHA-256."""
        return self.reveal()[:FINGERPRINT]

    def keyed(self, key: bytes) -> str:
        """Return a text that is that of this API key for everybody who has `key`, and reveals it to nobody else."""
        return hashlib.blake2b(self._sha256, key=key, digest_size=16).hexdigest()


def digest(apikey: str) -> Digest:
    """Return the digest of a plain API key, from a client or from the file."""
    # A client may send bytes that are not UTF-8, which decode to surrogates: a wrong key, not an error.
    return Digest(hashlib.sha256(apikey.encode("utf-8", "surrogatepass")).digest())


def apikey(text: str) -> Digest:
    """Parse an entry of `apikeys`: plain, or `sha256:` and 64 hex digits."""
    if hashed := _SHA256.fullmatch(text):
        return Digest(bytes.fromhex(hashed[1]))
    # A digest with a typing error would otherwise become a key that nobody has.
    if text.lower().startswith("sha256:"):
        raise ValueError("is not sha256: with 64 hex digits after it")
    # Else the words "env:NAME" would silently become the key itself.
    if text.startswith(("env:", "file:")):
        raise ValueError("is read from nowhere else: an API key is plain or sha256: with 64 hex digits")
    if not text.strip():
        raise ValueError("is empty")
    return digest(text)


# The forms of the setting `store`; error messages and its description are made of them.
STORE_FORMS = ("memory:", "sqlite", "sqlite:PATH", "redis://…", "rediss://…", "unix://…")


def without_credentials(address: str) -> str:
    """Remove user name, password, query and fragment from an address; if they cannot be separated, return only the
    scheme."""
    scheme, separator, after_scheme = address.partition("://")
    authority, *query = re.split(r"[?#]", after_scheme, maxsplit=1)
    # A password that contains ? or # without encoding: where it ends is unknown.
    if query and "@" in query[0]:
        return scheme
    return f"{scheme}{separator}{authority.rpartition('@')[2]}" if separator else address


def readable(text: str, folder: Path) -> File:
    """Return the path of a readable file, relative to `folder`. Raises ValueError if it cannot be read."""
    file = folder / text
    try:
        with file.open("rb"):
            return File(file)
    except OSError as error:
        raise UnresolvedError("file_unreadable", f"the file {file} cannot be read: {error.strerror}") from None


def resolve(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return the text itself, or the content of `env:NAME` or `file:PATH` (relative to `folder`), which is stripped."""
    if text.startswith("env:"):
        return _from_environment(text.removeprefix("env:"), environ)
    if text.startswith("file:"):
        return _from_file(folder / text.removeprefix("file:"))
    if not text.strip():
        raise ValueError("is empty")
    return text


def _from_environment(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise UnresolvedError("variable_missing", f"the environment variable {name} is not set")
    if not (text := environ[name].strip()):
        raise UnresolvedError("variable_empty", f"the environment variable {name} is empty")
    return text


def _from_file(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise UnresolvedError("file_not_text", f"the file {file} is not UTF-8 text") from None
    except OSError as error:
        raise UnresolvedError("file_unreadable", f"the file {file} cannot be read: {error.strerror}") from None
    if not text:
        raise UnresolvedError("file_empty", f"the file {file} is empty")
    return text


def exposed(path: Path) -> list[Path]:
    """Return the files with secrets of a configuration that other users can read, without duplicates. Raises
    ConfigError."""
    data = located_yaml.load(path, errors.ConfigError).data
    named = [path.parent / text.removeprefix("file:") for text in _secrets(data) if text.startswith("file:")]
    plain = any(not text.startswith(("env:", "file:")) for text in _secrets(data))
    # The configuration itself counts only where a secret stands in it.
    candidates = [*([path] if plain else []), *named]
    return [file for file in dict.fromkeys(candidates) if _is_open(file)]


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & _OTHERS)
    except OSError:
        return False


def _secrets(data: Any, key: object = None) -> Iterator[str]:
    """Yield the secrets in a configuration as written: plain, env:NAME or file:PATH."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _secrets(value, "apikeys" if key == "apikeys" and name == "key" else name)
    elif isinstance(data, list):
        for value in data:
            yield from _secrets(value, key)
    elif isinstance(data, str) and _is_secret(key, data):
        yield data


def _is_secret(key: object, text: str) -> bool:
    if key == "apikeys":
        return text != KNOWN_TO_ALL and not text.lower().startswith("sha256:")
    return key in _SECRET_KEYS or (key in _ADDRESS_KEYS and ("@" in text or text.startswith("file:")))


def is_loopback(host: str) -> bool:
    """Return whether a host name stands for the machine that uses it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
