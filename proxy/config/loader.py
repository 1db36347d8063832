"""Configuration loader: a YAML file to frozen settings, with secrets resolved and checked. Used once, at start.

A ConfigError has every mistake, one line each, such as `config.yaml:12:5: listen.port: …`; none holds a secret.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiohttp.helpers import is_ip_address

from proxy import errors
from proxy.config import mistakes, secret, settings, store_place
from proxy.config.blocks import WRONG, Blocks
from proxy.kit import located_yaml

# Placeholders for values that are not needed where no request is sent to the upstream.
ABSENT: dict[type[Any], str] = {
    secret.ClientId: "absent",
    secret.Secret: "absent",
    secret.ProxyAddress: "http://absent",
}
TOKEN_MIN = 16  # characters of the token of operators: nothing but its length stops guessing
# Names are labels of metrics, parts of ledger entries and of Redis keys: no space, no slash.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def load(path: Path, environ: Mapping[str, str], *, upstream: bool = True) -> settings.Config:
    """Read a configuration file. `env:` secrets come from `environ`, `file:` ones from beside the file.

    Without `upstream` no request will be sent to it: missing credentials, outgoing proxy and TLS files are accepted.
    The settings of the store are always required.
    """
    located = located_yaml.read(path, errors.ConfigError)
    return _Reader(located, path, environ, upstream).config()


@dataclass(frozen=True, slots=True)
class _Reader(Blocks):
    file: Path
    environ: Mapping[str, str]
    upstream: bool
    _first_uses: dict[Any, located_yaml.Trail] = field(default_factory=dict, init=False)

    @property
    def folder(self) -> Path:
        return self.file.parent

    def config(self) -> settings.Config:
        blocks = self.known(settings.Config, self.located.data, ())
        upstream = self._upstream(blocks)
        applications = self._applications(blocks.get("applications"), upstream)
        # Across blocks, so neither block can check it by itself.
        checked = {
            "applications": applications,
            **self._store(blocks),
            "admin": self._admin(blocks.get("admin")),
            "upstream": upstream,
            "uids": None if blocks.get("uids") is None else self.value(secret.File, blocks["uids"], ("uids",)),
        }
        others = {
            field.name: self.block(type(field.default), blocks.get(field.name), (field.name,))
            for field in msgspec.structs.fields(settings.Config)
            if field.name not in checked
        }
        return self.checked(settings.Config(**checked, **others))

    def _store(self, blocks: dict[str, Any]) -> dict[str, Any]:
        raw = "sqlite" if blocks.get("store") is None else blocks["store"]
        store = self.value(secret.StoreUrl, raw, ("store",))
        given = blocks.get("store_without_tls", False)
        allowed = self._setting(settings.Config, "store_without_tls", bool, given, ("store_without_tls",))
        if store is not WRONG and store.is_readable_on_the_way and not allowed:
            message = f"{store.shown} is reached without TLS; use rediss://, or set store_without_tls: true"
            self.report(("store",), message)
        return {"store": store, "store_without_tls": allowed}

    def _upstream(self, blocks: dict[str, Any]) -> Any:
        # The sandbox is the default so that a first start needs no account and sends nothing to anybody.
        raw = blocks.get("upstream", "sandbox")
        if raw == "sandbox":
            return raw
        if raw == "nexar":
            return settings.UpstreamSettings()
        if not isinstance(raw, dict):
            self.report(("upstream",), "must be sandbox, nexar, or a block of settings of the service")
            return "sandbox"
        upstream = self.block(settings.UpstreamSettings, raw, ("upstream",))
        for given, other in (("graphql_url", "token_url"), ("token_url", "graphql_url")):
            # Else tokens or credentials of one service would be sent to another.
            if given in raw and other not in raw:
                self.report(("upstream", other), mistakes.missing(settings.UpstreamSettings, other), "setting_missing")
        for each in () if upstream.connect_to is WRONG else upstream.connect_to:
            if is_ip_address(host := each.partition(":")[0]):
                message = f"{host} is an address, and only names are resolved; write the other address into the URLs"
                self.report(("upstream", "connect_to"), message)
        return upstream

    def _admin(self, raw: Any) -> Any:
        if raw is False:
            return False
        admin = self.block(settings.AdminSettings, raw, ("admin",))
        token = admin.token if self.upstream else None  # else it may be a placeholder
        if isinstance(token, secret.Secret) and len(token.reveal()) < TOKEN_MIN:
            message = f"is shorter than {TOKEN_MIN} characters; make one with: openssl rand -base64 24"
            self.report(("admin", "token"), message)
        return admin

    def _applications(self, raw: Any, upstream: Any) -> dict[str, settings.ApplicationSettings]:
        at = ("applications",)
        if not isinstance(raw, dict) or not raw:
            self.report(at, "at least one application is needed: a name, and below it its apikeys", "setting_missing")
            return {}
        return {name: self._application(name, block, upstream) for name, block in raw.items()}

    def _application(self, name: Any, raw: Any, upstream: Any) -> settings.ApplicationSettings:
        at = ("applications", name)
        known = self.known(settings.ApplicationSettings, raw, at)
        plan = known.get("plan")
        of_plan = settings.PLANS.get(plan, {}) if isinstance(plan, str) else {}
        application = self.block(settings.ApplicationSettings, of_plan | self._inner(known, at), at)
        # The sandbox accepts any application without credentials, but not half of them: that is a mistake.
        needed = upstream != "sandbox" or application.client_id is not None or application.client_secret is not None
        for key in ("client_id", "client_secret"):
            if needed and getattr(application, key) is None:
                self.report((*at, key), mistakes.missing(settings.ApplicationSettings, key), "setting_missing")
        self._check_sunsets(application, at)
        self._check_shares(application, at)
        # Last: a mistake at `at` hides those below it. YAML reads an unquoted 123 as a number.
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.report(at, "is not a name: letters, digits, - _ and . (a number needs quotes)")
        return application

    def _inner(self, raw: dict[str, Any], at: located_yaml.Trail) -> dict[str, Any]:
        """Convert nested blocks of an application first, so that an error in one has its own line."""
        inner = dict(raw)
        if isinstance(apikeys := raw.get("apikeys"), list):
            inner["apikeys"] = [self._apikey(entry, (*at, "apikeys", index)) for index, entry in enumerate(apikeys)]
        return inner | self._sunset(raw, at)

    def _sunset(self, raw: dict[str, Any], at: located_yaml.Trail) -> dict[str, Any]:
        """Convert `sunset` where it is a block or a date; anything else is accepted or reported with its block."""
        value = raw.get("sunset")
        if isinstance(value, dict):
            return {"sunset": self.block(settings.SunsetSettings, value, (*at, "sunset"))}
        try:
            return {"sunset": settings.SunsetSettings(msgspec.convert(value, datetime.date))}
        except (msgspec.ValidationError, UnicodeEncodeError):
            return {}

    def _check_sunsets(self, application: settings.ApplicationSettings, at: located_yaml.Trail) -> None:
        """Report a deprecation after the sunset, which RFC 9745 §4 forbids; both may come from different blocks."""
        keys = application.apikeys if isinstance(application.apikeys, tuple) else ()
        for index, key in enumerate(keys):
            # WRONG has been reported, and merges with nothing.
            sunset = None if WRONG in (application.sunset, key.sunset) else application.sunset_of(key)
            day, since = (sunset.date, sunset.since) if sunset else (None, None)
            if isinstance(day, datetime.date) and isinstance(since, datetime.date) and since > day:
                own = ("apikeys", index) if key.sunset else ()
                self.report((*at, *own, "sunset"), f"since {since} is after the sunset {day}")

    def _check_shares(self, application: settings.ApplicationSettings, at: located_yaml.Trail) -> None:
        """Report shares of the application's parts where these are not limited."""
        limit, keys = application.parts, application.apikeys if isinstance(application.apikeys, tuple) else ()
        if limit is WRONG or isinstance(limit, int):
            return
        for index, key in enumerate(keys):
            if key.share is not WRONG and key.share:
                message = f"needs the limit that it is part of: set {mistakes.dotted((*at, 'parts'))}, or plan"
                self.report((*at, "apikeys", index, "parts"), message, "setting_missing")

    def _apikey(self, raw: Any, at: located_yaml.Trail) -> Any:
        if isinstance(raw, dict):
            # Not named: the unknown key may be the apikey itself.
            if not raw.keys() <= set(settings.ApiKeySettings.__struct_fields__):
                known = ", ".join(settings.ApiKeySettings.__struct_fields__)
                self.report(at, f"holds an unknown key; known here: {known}", "unknown_key")
            apikey = self.block(settings.ApiKeySettings, raw | self._sunset(raw, at), at)
        else:
            apikey = settings.ApiKeySettings(self.value(secret.Digest, raw, at))
        self._check_first((), apikey.key, "apikey", "this API key", at)
        name = apikey.name or str(int(at[-1]) + 1)
        self._check_first(at[:-1], name, "name", f"the name {name}", at)
        return apikey

    def _check_first(
        self, scope: located_yaml.Trail, value: Any, noun: str, shown: str, at: located_yaml.Trail
    ) -> None:
        """Report an API key, or its name, that an earlier one within `scope` has."""
        earlier = self._first_uses.setdefault((scope, value), at)
        if earlier is not at and value is not WRONG:
            place = f"{mistakes.dotted(earlier)} ({self.located.place(earlier)})"
            self.report(at, f"{shown} is already given in {place}", f"duplicate_{noun}")

    def decode(self, kind: type[Any], raw: Any) -> Any:
        if isinstance(raw, kind):  # an inner block has been read before
            return raw
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        if kind is secret.Digest:
            return secret.apikey(raw)
        if kind is secret.StoreUrl:
            return store_place.parse(self._resolved(kind, raw), self.file, self.environ)
        if kind is secret.File:
            return secret.readable(raw, self.folder) if self.upstream else secret.File(self.folder / raw)
        return kind(self._resolved(kind, raw))

    def _resolved(self, kind: type[Any], raw: str) -> str:
        try:
            return secret.resolve(raw, self.folder, self.environ)
        except ValueError:
            # Only a reference may be unresolved; a value that is written out must be valid even where it is not used.
            if self.upstream or kind not in ABSENT or not raw.startswith(("env:", "file:")):
                raise
            return ABSENT[kind]
