"""Values that must not be seen: secrets and the store's address are hidden, API keys are kept as digests only.

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

from proxy import errors
from proxy.kit import located_yaml

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
KNOWN_TO_ALL = "EXAMPLE_KEY"  # of the shipped configuration, so no secret

_SECRET_KEYS = ("client_secret", "token", "store_key")
_ADDRESS_KEYS = ("store", "proxy")  # secret where they hold a password
_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")
_PROXY = re.compile(r"http://([^\s/@?#:]+(:[^\s/@?#]*)?@)?(\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]]+)(:\d{1,5})?/?")
_REDIS = re.compile(r"(redis|rediss|unix)://.")
_SHA256 = re.compile(r"sha256:([0-9a-fA-F]{64})")


class ClientId(str):
    """An application's client id. Not a secret, but it may be read from the same places."""

    __slots__ = ()


class Secret:
    """Hides itself from repr, logs and tracebacks; `reveal` is the one way to the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def reveal(self) -> str:
        """The secret itself, for the request that needs it."""
        return self._text


class StoreUrl(Secret):
    """Where the store is: `memory:`, `sqlite`, `sqlite:PATH` or an address of Redis, which may hold a password."""

    __slots__ = ()

    @property
    def shown(self) -> str:
        """What people may see of it."""
        return without_credentials(self.reveal())


class StoreKey(Secret):
    """A key that tokens in the store are encrypted with: 32 bytes in base64, with either of its two alphabets."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        alike = text.replace("+", "-").replace("/", "_")
        if not _KEY.fullmatch(alike):
            raise ValueError("is not 32 bytes in base64; make one with: openssl rand -base64 32")
        super().__init__(alike)


class ProxyAddress(Secret):
    """Where outgoing calls pass through. Hidden, because name and password may be in it."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        if not _PROXY.fullmatch(text):
            raise ValueError("is not http://HOST:PORT or http://NAME:PASSWORD@HOST:PORT")
        super().__init__(text)


class Network(str):
    """An address or a network, IPv4 or IPv6, as `ipaddress` reads it."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Network":
        try:
            return super().__new__(cls, ipaddress.ip_network(text))
        except ValueError:
            raise ValueError("is no address or network, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32") from None


class File(str):
    """The path of a file that could be read when the configuration was."""

    __slots__ = ()


class SecretSource:
    """A secret that changes while the program runs: `env:NAME` or `file:PATH`, looked up each time."""

    __slots__ = ("_environ", "_folder", "_text")

    def __init__(self, text: str, folder: Path, environ: Mapping[str, str]) -> None:
        if not text.startswith(("env:", "file:")):
            raise ValueError("is neither env:NAME nor file:PATH: it changes, and is looked up each time")
        self._text = text
        self._folder = folder
        self._environ = environ

    def __repr__(self) -> str:
        return "SecretSource(hidden)"

    def read(self) -> Secret:
        """What it is now. Raises ValueError where there is none."""
        return Secret(resolve(self._text, self._folder, self._environ))


class Digest:
    """The SHA-256 of an apikey, to look it up by. Hidden too: v3 keys are short enough to be tried out."""

    __slots__ = ("_sha256",)

    def __init__(self, sha256: bytes) -> None:
        self._sha256 = sha256

    def __repr__(self) -> str:
        return "Digest(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and self._sha256 == other._sha256

    def __hash__(self) -> int:
        return hash(self._sha256)


def digest(apikey: str) -> Digest:
    """What stands for a plain apikey, from a client or from the file."""
    return Digest(hashlib.sha256(apikey.encode("utf-8", "surrogatepass")).digest())


def apikey(text: str) -> Digest:
    """An entry of `apikeys`: plain, or `sha256:` and 64 hex digits."""
    if known := _SHA256.fullmatch(text):
        return Digest(bytes.fromhex(known[1]))
    if text.lower().startswith("sha256:"):
        raise ValueError("is not sha256: with 64 hex digits after it")
    if text.startswith(("env:", "file:")):
        raise ValueError("is read from nowhere else: an apikey is plain or sha256: with 64 hex digits")
    if not text.strip():
        raise ValueError("is empty")
    return digest(text)


# The forms of the setting `store`; error messages and its description are made of them.
STORE_FORMS = ("memory:", "sqlite", "sqlite:PATH", "redis://…", "rediss://…", "unix://…")


def store_url(text: str, folder: Path) -> StoreUrl:
    """What `store` says; a relative path is one from `folder`."""
    if text in ("memory:", "sqlite") or _REDIS.match(text):
        return StoreUrl(text)
    scheme, _, path = text.partition(":")
    if scheme == "sqlite" and path:
        return StoreUrl(f"sqlite:{(folder / Path(path).expanduser()).absolute()}")
    raise ValueError(f"is none of {', '.join(STORE_FORMS[:-1])} and {STORE_FORMS[-1]}")


def without_credentials(address: str) -> str:
    """An address without user name, password, query and fragment; its scheme alone where these cannot be told apart."""
    scheme, mark, rest = address.partition("://")
    place, *more = re.split(r"[?#]", rest, maxsplit=1)
    if more and "@" in more[0]:
        return scheme
    return f"{scheme}{mark}{place.rpartition('@')[2]}" if mark else address


def readable(text: str, folder: Path) -> File:
    """The path of a file, from `folder`, that is there and can be read."""
    file = folder / text
    try:
        with file.open("rb"):
            return File(file)
    except OSError as error:
        raise ValueError(f"the file {file} cannot be read: {error.strerror}") from None


def resolve(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    """The text itself, or that of `env:NAME`, or of `file:PATH` (from `folder`). Those two are stripped."""
    if text.startswith("env:"):
        return _from_environment(text.removeprefix("env:"), environ)
    if text.startswith("file:"):
        return _from_file(folder / text.removeprefix("file:"))
    if not text.strip():
        raise ValueError("is empty")
    return text


def _from_environment(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise ValueError(f"the environment variable {name} is not set")
    if not (text := environ[name].strip()):
        raise ValueError(f"the environment variable {name} is empty")
    return text


def _from_file(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError(f"the file {file} is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"the file {file} cannot be read: {error.strerror}") from None
    if not text:
        raise ValueError(f"the file {file} is empty")
    return text


def exposed(path: Path) -> list[Path]:
    """The files with secrets of a configuration that other users can read, each once. Raises ConfigError."""
    data = located_yaml.load(path, errors.ConfigError).data
    named = [path.parent / text.removeprefix("file:") for text in _secrets(data) if text.startswith("file:")]
    plain = any(not text.startswith(("env:", "file:")) for text in _secrets(data))
    candidates = [*([path] if plain else []), *named, *_private_keys(data, path.parent)]
    return [file for file in dict.fromkeys(candidates) if _is_open(file)]


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & _OTHERS)
    except OSError:
        return False


def _secrets(data: Any, key: object = None) -> Iterator[str]:
    """The secrets in a configuration as they are written: plain, env:NAME or file:PATH."""
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


def _private_keys(data: Any, folder: Path) -> Iterator[Path]:
    """upstream.tls.client_key, and client_cert where that may hold the key."""
    upstream = data.get("upstream") if isinstance(data, dict) else None
    tls = upstream.get("tls") if isinstance(upstream, dict) else None
    if isinstance(tls, dict):
        file = tls.get("client_key") or tls.get("client_cert")
        if isinstance(file, str):
            yield folder / file
