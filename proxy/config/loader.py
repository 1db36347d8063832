"""Reader of settings: a YAML file to frozen blocks. A ConfigError has every mistake, one line each, such as
`config.yaml:12:5: listen.port: …`; none holds a secret."""

import difflib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec

from proxy import config, errors, kit
from proxy.config import secret
from proxy.kit import located_yaml
from proxy.kit.located_yaml import Trail

S = TypeVar("S", bound=config.Settings)
GROUPED = re.compile(r"[0-9]{1,3}([,.' _])[0-9]{3}(?:\1[0-9]{3})*")  # a number such as 1,000
SECRET = {"apikeys", "client_id", "client_secret", "key", "token", "proxy", "keys"}  # their values are not shown
# Stands for values that are not needed where no request is sent to the upstream.
ABSENT = "http://absent.invalid"
EXAMPLE_KEY = "EXAMPLE_KEY"  # in the shipped configuration: not a secret
# Names are labels of metrics, parts of ledger entries and of Redis keys: no space, no slash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def load(path: Path, environ: Mapping[str, str], *, upstream: bool = True, accounts: bool = False) -> config.Config:
    """Read a configuration file. Without `upstream` no request will be sent to it: missing credentials, outgoing proxy
    and files are accepted, but client ids only where no `accounts` are read, which are known by them. The settings of
    the store are always required."""
    return _Reader(path, environ, upstream, accounts).settings()


def exposed(path: Path) -> list[Path]:
    """Return the files with secrets of a configuration that other users can read. Raises ConfigError."""
    reader = _Reader(path, {}, upstream=False)
    with suppress(errors.ConfigError):  # such as a variable that is not set
        reader.settings()
    for_others = stat.S_IRWXG | stat.S_IRWXO
    return [file for file in reader.secret_files if os.path.exists(file) and file.stat().st_mode & for_others]


class Blocks:
    """Reader of the blocks in one file. It collects mistakes and goes on, so that one run shows all of them. `env:`
    values come from `environ`, `file:` ones from beside the file."""

    def __init__(self, file: Path, environ: Mapping[str, str]) -> None:
        self.located = located_yaml.load(file, errors.ConfigError, all_mistakes=True)
        self.file, self.environ = file, environ
        self._mistakes: list[tuple[int, str]] = [*self.located.duplicates]  # with their places in the file
        self._wrong: set[Trail] = set()

    def decode(self, kind: type[Any], raw: Any) -> Any:
        """Convert a text to a type that msgspec does not know. Raises TypeError and ValueError, whose messages never
        have the value."""
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        text = secret.resolve(raw, self.file.parent, self.environ)
        return secret.apikey(text) if kind is secret.Digest else kind(text)

    def checked(self, settings: S | None) -> S:
        """Return the settings. Raises ConfigError with all mistakes, in the order of the file."""
        if self._mistakes or settings is None:
            ordered = sorted(self._mistakes, key=itemgetter(0))
            raise errors.ConfigError("\n".join(text for _, text in ordered))
        return settings

    def report(self, at: Trail, message: str, named: Trail | None = None) -> None:
        """Record a mistake, unless one at the same place or around it has caused it. `named` is shown for its place."""
        if any(at[:length] in self._wrong for length in range(len(at) + 1)):
            return
        self._wrong.add(at)
        named = at if named is None else named
        text, mark = f"{self.located.place(at)}: {dotted(named)}{': ' if named else ''}{message}", self.located.mark(at)
        # A key may hold a line break, too.
        self._mistakes.append((mark.index if mark else 0, kit.printable(text).replace("\n", "\\n")))

    def block(self, kind: type[S], raw: Any) -> S | None:
        """Convert the outermost block; None where something in it is wrong, all of which is reported."""
        try:
            return msgspec.convert(raw, kind, dec_hook=self.decode)
        except msgspec.ValidationError:  # the first mistake only, without its place in the file
            self._search(kind, raw, ())
            return None

    def _search(self, hint: Any, raw: Any, at: Trail, accepts: str = "") -> None:
        accepts, (kind, content) = accepts or _description(hint), _content(hint)
        if isinstance(raw, dict) and content is None and kind is not None:
            self._search_block(kind, raw, at)
            return
        elements: Iterable[tuple[Any, Any]] = enumerate(raw) if kind is tuple and isinstance(raw, list) else ()
        if kind is dict and isinstance(raw, dict):
            elements = raw.items()
        for step, each in elements:
            self._search(content, each, (*at, step), accepts if kind is tuple else "")
        if any(wrong[: len(at)] == at for wrong in self._wrong):
            return
        try:
            msgspec.convert(raw, hint, dec_hook=self.decode)
        except msgspec.ValidationError as error:
            if isinstance(error.__cause__, ValueError | TypeError):  # of a type of this service
                self.report(at, str(error.__cause__))
                return
            name = next((step for step in reversed(at) if isinstance(step, str)), "")
            kinds = {dict: "a block" if raw else "an empty block", list: "a list", type(None): "an empty value"}
            shown = kinds.get(type(raw)) or (str(raw).lower() if isinstance(raw, bool) else repr(raw))
            # An @ may be part of an address with a password, whatever the setting.
            if name in SECRET or "@" in str(raw):
                shown = "this value"
            is_grouped, number = GROUPED.fullmatch(str(raw)), re.sub("[,.' _]", "", str(raw))
            it = f"did you mean {number}? It" if is_grouped else "it"
            accepts = accepts or f"a block of {', '.join(kind.__struct_fields__)}"
            self.report(at, f"{shown} is not accepted; {it} accepts {accepts}")

    def _search_block(self, kind: type[config.Settings], raw: dict[Any, Any], at: Trail) -> None:
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        before, number = "", cast(Any, None)
        for name, value in raw.items():
            if name in fields:
                self._search(fields[name].type, value, (*at, name))
            elif value is None and type(number) is int and re.fullmatch("[0-9]{3}", str(name)):
                text = f"a comma ends a value in braces: write {number}{name}, not {number},{name}"
                self.report((*at, before), text)
            else:
                similar = next(iter(difflib.get_close_matches(str(name), fields, 1)), None)
                listed, unknown = f"did you mean {similar}? Known here" if similar else "known here", (*at, str(name))
                # Among API keys it may be one itself, and is not shown.
                named = unknown if similar or SECRET.isdisjoint(at) else at
                self.report(unknown, f"unknown key; {listed}: {', '.join(fields)}", named)
                if similar and similar not in raw:
                    self._wrong.add((*at, similar))  # it would else be reported as missing, too
            before, number = name, value
        for field in fields.values():
            if field.required and field.name not in raw:
                self.report((*at, field.name), f"is missing; it accepts {accepted(kind, field.name)}")


class _Reader(Blocks):
    """Reader of a configuration file. `secret_files` are those in which it has found secrets."""

    def __init__(self, file: Path, environ: Mapping[str, str], upstream: bool, accounts: bool = False) -> None:
        super().__init__(file, environ)
        self._upstream = upstream
        self._required = (secret.StoreUrl, secret.ClientId) if accounts else (secret.StoreUrl,)
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
        named = raw["applications"] if isinstance(raw.get("applications"), dict) else {}
        if named:
            raw["applications"] = {str(name): _completed(each) for name, each in named.items()}
        settings = self.block(config.Config, raw)
        upstream = raw.get("upstream", "sandbox")
        for given, other in (("graphql_url", "token_url"), ("token_url", "graphql_url")):
            # Else tokens or credentials of one service would be sent to another.
            if isinstance(upstream, dict) and given in upstream and other not in upstream:
                self.report(("upstream", other), f"is missing; it accepts {accepted(config.UpstreamSettings, other)}")
        for name in named:
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
                self.report((*at, name), f"is missing; it accepts {accepted(config.ApplicationSettings, name)}")
        keys = raw.get("apikeys")
        for place, key in enumerate(keys if isinstance(keys, list) else (), 1):
            # An API key or its name that another one has, and a share of parts that are not limited.
            name, at_key = str(key.get("name") or place), (*at, "apikeys", place - 1)
            uses: list[tuple[tuple[Trail, object], str]] = [((at, name), f"the name {name}")]
            with suppress(ValueError, TypeError, KeyError):  # what is no API key has been reported
                uses.insert(0, (((), secret.apikey(key["key"])), "this API key"))
            for use, shown in uses:
                earlier = self._first_uses.setdefault(use, at_key)
                if earlier is not at_key:
                    first = f"{dotted(earlier)} ({self.located.place(earlier)})"
                    self.report(at_key, f"{shown} is already given in {first}")
            if str(key.get("parts")).endswith("%") and not isinstance(raw.get("parts"), int):
                needed = dotted((*at, "parts"))
                self.report((*at_key, "parts"), f"needs the limit that it is part of: set {needed}, or plan")

    def decode(self, kind: type[Any], raw: Any) -> Any:
        if not isinstance(raw, str):
            return super().decode(kind, raw)
        folder = self.file.parent
        if kind is secret.File:
            try:
                if self._upstream:
                    (folder / raw).open().close()
            except OSError as error:
                raise ValueError(f"the file {folder / raw} cannot be read: {error.strerror}") from error
            return secret.File(folder / raw)
        if issubclass(kind, secret.Secret):
            self._note_secret(kind, raw)
        if kind is secret.Digest:
            return secret.apikey(raw)
        try:
            resolved = secret.resolve(raw, folder, self.environ)
        except ValueError:
            # Only a reference may be unresolved; a value that is written out must be valid even where it is not used.
            if self._upstream or kind in self._required or not raw.startswith(("env:", "file:")):
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


def dotted(at: Trail) -> str:
    """Return a path as in `applications.demo.apikeys[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")


def accepted(kind: type[config.Settings], name: str) -> str:
    """Return what a setting accepts: its description, or the settings of a block."""
    hint = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    block = block_of(hint)
    return _description(hint) or f"a block of {', '.join(block.__struct_fields__ if block else ())}"


def block_of(hint: Any) -> type[config.Settings] | None:
    """Return the block of settings that a type is, or a list of, or may be."""
    kind, content = _content(hint)
    return kind if content is None else block_of(content)


def _description(hint: Any) -> str:
    if get_origin(hint) is Literal:
        *words, last = get_args(hint)
        return f"{', '.join(words)} or {last}"
    own = [each.description for each in get_args(hint) if isinstance(each, msgspec.Meta) and each.description]
    return own[0] if own else next(filter(None, map(_description, get_args(hint))), "")


def _content(hint: Any) -> tuple[Any, Any]:
    """Return the block that a type is or may be, and None; or `tuple` or `dict` and the type of what that contains."""
    if isinstance(hint, type) and not get_args(hint):
        return (hint, None) if issubclass(hint, config.Settings) else (None, None)
    if get_origin(hint) in (tuple, dict):
        return get_origin(hint), get_args(hint)[0 if get_origin(hint) is tuple else 1]
    return next((found for found in map(_content, get_args(hint)) if found[0]), (None, None))


def _completed(raw: Any) -> Any:
    """Return an application with what its plan sets, and its API keys as blocks."""
    if not isinstance(raw, dict):
        return {} if raw is None else raw
    raw = config.PLANS.get(str(raw.get("plan")), {}) | raw
    if isinstance(raw.get("apikeys"), list):
        raw["apikeys"] = [each if isinstance(each, dict) else {"key": each} for each in raw["apikeys"]]
    return raw
