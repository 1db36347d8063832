"""Configuration loader: a YAML file to frozen settings. A ConfigError has every mistake, one line each, such as
`config.yaml:12:5: listen.port: …`; none holds a secret."""

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proxy import config, errors
from proxy.config import base, secret
from proxy.kit.located_yaml import Trail

# Stands for values that are not needed where no request is sent to the upstream.
ABSENT = "http://absent.invalid"
EXAMPLE_KEY = "EXAMPLE_KEY"  # in the shipped configuration: not a secret
# Names are labels of metrics, parts of ledger entries and of Redis keys: no space, no slash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def load(path: Path, environ: Mapping[str, str], *, upstream: bool = True) -> config.Config:
    """Read a configuration file. Without `upstream` no request will be sent to it: missing credentials, outgoing proxy
    and files are accepted. The settings of the store are always required."""
    return _Reader(path, environ, upstream).settings()


def exposed(path: Path) -> list[Path]:
    """Return the files with secrets of a configuration that other users can read. Raises ConfigError."""
    reader = _Reader(path, {}, upstream=False)
    with suppress(errors.ConfigError):  # such as a variable that is not set
        reader.settings()
    for_others = stat.S_IRWXG | stat.S_IRWXO
    return [file for file in reader.secret_files if os.path.exists(file) and file.stat().st_mode & for_others]


def _completed(raw: Any) -> Any:
    """Return an application with what its plan sets, and its API keys as blocks."""
    if not isinstance(raw, dict):
        return {} if raw is None else raw
    raw = config.PLANS.get(str(raw.get("plan")), {}) | raw
    if isinstance(raw.get("apikeys"), list):
        raw["apikeys"] = [each if isinstance(each, dict) else {"key": each} for each in raw["apikeys"]]
    return raw


class _Reader(base.Blocks):
    """Reader of a configuration file. `secret_files` are those in which it has found secrets."""

    def __init__(self, file: Path, environ: Mapping[str, str], upstream: bool) -> None:
        super().__init__(file, environ)
        self._upstream = upstream
        self._first_uses: dict[tuple[Trail, object], Trail] = {}
        self.secret_files: dict[Path, None] = {}

    def settings(self) -> config.Config:
        raw = {} if self.located.data is None else self.located.data
        if not isinstance(raw, dict):
            return self.checked(self.block(config.Config, raw))
        # An empty block has its defaults; an empty upstream would silently be the sandbox.
        raw = {"store": "sqlite"} | {name: each for name, each in raw.items() if each is not None or name == "upstream"}
        if raw.get("upstream") == "nexar":
            raw["upstream"] = {}
        named = raw.get("applications")
        if isinstance(named, dict):
            raw["applications"] = {str(name): _completed(each) for name, each in named.items()}
        settings = self.block(config.Config, raw)
        upstream = raw.get("upstream", "sandbox")
        for given, other in (("graphql_url", "token_url"), ("token_url", "graphql_url")):
            # Else tokens or credentials of one service would be sent to another.
            if isinstance(upstream, dict) and given in upstream and other not in upstream:
                self.report_missing(config.UpstreamSettings, ("upstream", other))
        for name in named if isinstance(named, dict) else ():
            application = raw["applications"][str(name)]
            if isinstance(application, dict):
                self._check_application(application, ("applications", name), upstream)
            # Last: it would hide mistakes below it. YAML reads an unquoted 123 as a number.
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                self.report(("applications", name), "is not a name: letters, digits, - _ and . (a number needs quotes)")
        return self.checked(settings)

    def _check_application(self, raw: dict[str, Any], at: Trail, upstream: Any) -> None:
        # The sandbox accepts any application without credentials, but not half of them: that is a mistake.
        is_complete = upstream == "sandbox" and raw.get("client_id") is None and raw.get("client_secret") is None
        for name in ("apikeys",) if is_complete else ("apikeys", "client_id", "client_secret"):
            if not raw.get(name):
                self.report_missing(config.ApplicationSettings, (*at, name))
        keys = raw.get("apikeys")
        for index, key in enumerate(keys if isinstance(keys, list) else ()):
            self._check_key(key, (*at, "apikeys", index), isinstance(raw.get("parts"), int))

    def _check_key(self, raw: dict[str, Any], at: Trail, is_limited: bool) -> None:
        """Report an API key or its name that another one has, and a share of parts that are not limited."""
        name = str(raw.get("name") or int(at[-1]) + 1)
        with suppress(ValueError, TypeError, KeyError):  # what is no API key has been reported
            self._check_first(((), secret.apikey(raw["key"])), "this API key", at)
        self._check_first((at[:-1], name), f"the name {name}", at)
        if str(raw.get("parts")).endswith("%") and not is_limited:
            needed = base.dotted((*at[:2], "parts"))
            self.report((*at, "parts"), f"needs the limit that it is part of: set {needed}, or plan")

    def _check_first(self, use: tuple[Trail, object], shown: str, at: Trail) -> None:
        earlier = self._first_uses.setdefault(use, at)
        if earlier is not at:
            self.report(at, f"{shown} is already given in {base.dotted(earlier)} ({self.located.place(earlier)})")

    def decode(self, kind: type[Any], text: str) -> Any:
        folder = self.file.parent
        if kind is secret.File:
            try:
                if self._upstream:
                    (folder / text).open().close()
            except OSError as error:
                raise ValueError(f"the file {folder / text} cannot be read: {error.strerror}") from error
            return secret.File(folder / text)
        if issubclass(kind, secret.Secret):
            self._note_secret(kind, text)
        if kind is secret.Digest:
            return secret.apikey(text)
        try:
            resolved = secret.resolve(text, folder, self.environ)
        except ValueError:
            # Only a reference may be unresolved; a value that is written out must be valid even where it is not used.
            if self._upstream or kind is secret.StoreUrl or not text.startswith(("env:", "file:")):
                raise
            resolved = ABSENT
        if kind is not secret.StoreUrl:
            return kind(resolved)
        without_tls = (self.located.data or {}).get("store_without_tls") is True
        return secret.StoreUrl.parse(resolved, self.file, self.environ, without_tls)

    def _note_secret(self, kind: type[Any], text: str) -> None:
        """Note the file in which a secret is; an address is one only with a password."""
        is_plain = "@" in text or kind not in (secret.ProxyAddress, secret.StoreUrl)
        if text.startswith("file:"):
            self.secret_files[self.file.parent / text.removeprefix("file:")] = None
        elif is_plain and not text.startswith(("env:", "sha256:")) and text != EXAMPLE_KEY:
            self.secret_files[self.file] = None
