"""Files with secrets that other users can read: the configuration, and those that it names by `file:`."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.kit import located_yaml

OTHERS = stat.S_IRWXG | stat.S_IRWXO
KNOWN_TO_ALL = "EXAMPLE_KEY"  # the key of the shipped configuration

_SECRETS = ("client_secret", "token", "store_key")
_ADDRESSES = ("store", "proxy")  # secret where they hold a password


def exposed(path: Path) -> list[Path]:
    """The files, each once. Windows has other permissions: none there. Raises ConfigError for what is no YAML."""
    if os.name == "nt":
        return []
    data = located_yaml.load(path, errors.ConfigError).data
    named = [path.parent / text.removeprefix("file:") for text in _secrets(data) if text.startswith("file:")]
    plain = any(not text.startswith(("env:", "file:")) for text in _secrets(data))
    candidates = [*([path] if plain else []), *named, *_private_keys(data, path.parent)]
    return [file for file in dict.fromkeys(candidates) if _is_open(file)]


def _is_open(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & OTHERS)
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
    return key in _SECRETS or (key in _ADDRESSES and ("@" in text or text.startswith("file:")))


def _private_keys(data: Any, folder: Path) -> Iterator[Path]:
    """upstream.tls.client_key, and client_cert where that may hold the key."""
    upstream = data.get("upstream") if isinstance(data, dict) else None
    tls = upstream.get("tls") if isinstance(upstream, dict) else None
    if isinstance(tls, dict):
        file = tls.get("client_key") or tls.get("client_cert")
        if isinstance(file, str):
            yield folder / file
