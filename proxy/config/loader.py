"""From a YAML file to the frozen settings, with everything resolved and checked. Used once, at start.

Every mistake is a ConfigError of the form `config.yaml:12:5: listen.port: …`, which never holds a secret.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from proxy import errors
from proxy.config import mistakes, secret, settings
from proxy.kit import located_yaml

S = TypeVar("S", bound=settings.Settings)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def load(path: Path, environ: Mapping[str, str]) -> settings.Config:
    """Read a configuration file. `env:` secrets come from `environ`, `file:` ones from beside the file."""
    located = located_yaml.load(path, errors.ConfigError)
    return _Reader(located, path.parent, environ).config()


@dataclass(frozen=True, slots=True)
class _Reader:
    located: located_yaml.Located
    folder: Path
    environ: Mapping[str, str]

    def config(self) -> settings.Config:
        blocks = self._known(settings.Config, self.located.data, ())
        upstream = self._upstream(blocks)
        return settings.Config(
            applications=self._applications(blocks.get("applications"), upstream),
            listen=self._block(settings.Listen, blocks.get("listen"), ("listen",)),
            upstream=upstream,
            translation=self._block(settings.Translation, blocks.get("translation"), ("translation",)),
            sharing=self._block(settings.Sharing, blocks.get("sharing"), ("sharing",)),
            answers=self._block(settings.Answers, blocks.get("answers"), ("answers",)),
            lists=self._block(settings.Lists, blocks.get("lists"), ("lists",)),
            log=self._block(settings.Log, blocks.get("log"), ("log",)),
        )

    def _upstream(self, blocks: dict[str, Any]) -> Any:
        raw = blocks.get("upstream", "sandbox")
        if raw == "sandbox":
            return raw
        if not isinstance(raw, dict):
            self._fail(("upstream",), "is either sandbox or a block with graphql_url and token_url")
        return self._block(settings.Upstream, raw, ("upstream",))

    def _applications(self, raw: Any, upstream: Any) -> dict[str, settings.Application]:
        at = ("applications",)
        if not isinstance(raw, dict) or not raw:
            self._fail(at, "at least one application is needed: a name, and below it its apikeys")
        found = {name: self._application(name, block, upstream) for name, block in raw.items()}
        self._check_apikeys(found)
        return found

    def _application(self, name: Any, raw: Any, upstream: Any) -> settings.Application:
        at = ("applications", name)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._fail(at, "is not a name: letters, digits, - _ and . (a number needs quotes)")
        application = self._block(settings.Application, raw, at)
        for key in ("client_id", "client_secret"):
            if getattr(application, key) is None and (upstream != "sandbox" or _any_credential(application)):
                self._fail((*at, key), f"is missing; it accepts {mistakes.accepted(settings.Application, key)}")
        return application

    def _check_apikeys(self, applications: dict[str, settings.Application]) -> None:
        """Each apikey leads to one application."""
        first: dict[secret.Digest, located_yaml.Trail] = {}
        for name, application in applications.items():
            for index, digest in enumerate(application.apikeys):
                at = ("applications", name, "apikeys", index)
                if digest in first:
                    other = first[digest]
                    place = f"{mistakes.dotted(other)} ({self.located.place(other)})"
                    self._fail(at, f"this apikey is already given in {place}")
                first[digest] = at

    def _block(self, kind: type[S], raw: Any, at: located_yaml.Trail) -> S:
        raw = self._known(kind, raw, at)
        try:
            return msgspec.convert(raw, kind, dec_hook=self._decode)
        except msgspec.ValidationError as error:
            path, message = mistakes.explain(error, kind, raw, at)
            self._fail(path, message)

    def _known(self, kind: type[settings.Settings], raw: Any, at: located_yaml.Trail) -> dict[str, Any]:
        """The block as a dict (an empty one where nothing is written) that has no unknown keys."""
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self._fail(at, f"is a block of settings: {', '.join(kind.__struct_fields__)}")
        for key in raw:
            if key not in kind.__struct_fields__:
                self._fail((*at, key), mistakes.unknown_key(key, kind))
        return raw

    def _decode(self, kind: type[Any], raw: Any) -> Any:
        if not isinstance(raw, str):
            raise TypeError("is not text; put it in quotes")
        if kind is secret.Digest:
            return secret.apikey(raw)
        return kind(secret.resolve(raw, self.folder, self.environ))

    def _fail(self, at: located_yaml.Trail, message: str) -> NoReturn:
        name = f"{mistakes.dotted(at)}: " if at else ""
        raise errors.ConfigError(f"{self.located.place(at)}: {name}{message}")


def _any_credential(application: settings.Application) -> bool:
    return application.client_id is not None or application.client_secret is not None
