"""Reading of the assumption files. A mistake is a ConfigError that names file, line and id."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, cast

import msgspec

from proxy import config, errors
from proxy.kit import located_yaml
from proxy.kit.located_yaml import Trail
from proxy.tools.conform import expressions
from proxy.tools.conform.assumptions import CONDITIONS, Assumption, AssumptionFile, ProbeRequest

FILES = ("transport.yaml", "supply.yaml")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All probe requests by name and all assumptions, each in the order of the files."""

    requests: dict[str, ProbeRequest] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()

    def only(self, ids: Iterable[str]) -> "Catalogue":
        """Return the assumptions with these ids, and the requests that they observe. Raises KeyError for an unknown
        id."""
        unknown = set(ids) - {assumption.id for assumption in self.assumptions}
        if unknown:
            raise KeyError(min(unknown))
        chosen = tuple(assumption for assumption in self.assumptions if assumption.id in set(ids))
        observed = {name for assumption in chosen for name in assumption.requests}
        requests = {name: request for name, request in self.requests.items() if name in observed}
        return Catalogue(requests, chosen)


def load(folder: Path = Path(__file__).parent, files: Iterable[str] = FILES) -> Catalogue:
    """Read all files. Raises ConfigError."""
    requests: dict[str, ProbeRequest] = {}
    assumptions: dict[str, Assumption] = {}
    for name in files:
        reader = _Reader(located_yaml.load(folder / name, errors.ConfigError))
        content = reader.content()
        reader.check(content, requests, assumptions)
    return Catalogue(requests, tuple(assumptions.values()))


@dataclass(frozen=True, slots=True)
class _Reader:
    located: located_yaml.LocatedYaml

    def content(self) -> AssumptionFile:
        data = self.located.data
        try:
            return msgspec.convert(data, AssumptionFile)
        except msgspec.ValidationError as error:
            message, at = located_yaml.explain(error)
        # msgspec does not say which of the named requests it means, so each is converted by itself.
        if at[:1] == ("requests",):
            for name, request in data["requests"].items():
                self._convert_request(name, request)
        raise self._mistake(at, message)

    def check(
        self, content: AssumptionFile, requests: dict[str, ProbeRequest], assumptions: dict[str, Assumption]
    ) -> None:
        """Check the content and add it to what earlier files have."""
        for name, request in content.requests.items():
            for message in _request_mistakes(name, request, requests):
                self._fail(("requests", name), message)
            requests[name] = request
        for index, assumption in enumerate(content.assumptions):
            at: Trail = ("assumptions", index)
            for key, message in _assumption_mistakes(assumption, requests, assumptions):
                self._fail((*at, key), message)
            assumptions[assumption.id] = assumption
        observed = {name for assumption in content.assumptions for name in assumption.requests}
        for name in content.requests:
            if name not in observed:
                self._fail(("requests", name), "no assumption observes this request")

    def _convert_request(self, name: str, raw: object) -> None:
        try:
            msgspec.convert(raw, ProbeRequest)
        except msgspec.ValidationError as error:
            message, at = located_yaml.explain(error, ("requests", name))
            self._fail(at, message)

    def _fail(self, at: Trail, message: str) -> NoReturn:
        raise self._mistake(at, message)

    def _mistake(self, at: Trail, message: str) -> errors.ConfigError:
        return errors.ConfigError(f"{self.located.place(at)}: {self._subject(at)}: {message}")

    def _subject(self, at: Trail) -> str:
        """Return the id of the assumption, or the name of the request, at this path."""
        if at[:1] == ("assumptions",) and len(at) > 1:
            entry = self.located.data["assumptions"][cast(int, at[1])]
            return str(entry.get("id", f"assumption {at[1]}")) if isinstance(entry, dict) else f"assumption {at[1]}"
        return ".".join(map(str, at[1:2] or at)) or "the file"


def _request_mistakes(name: str, request: ProbeRequest, earlier: dict[str, ProbeRequest]) -> Iterator[str]:
    if name in earlier:
        yield "another file has a request of this name"
    if request.kind == "graphql" and not request.document and request.body is None:
        yield "a graphql request needs a document"
    if request.kind == "http" and not request.url:
        yield "an http request needs a url"
    if request.parts < 0:
        yield "parts must not be negative"
    for feature in sorted(set(request.features) - set(config.FEATURES)):
        yield f"unknown feature {feature!r}; known are {', '.join(config.FEATURES)}"
    if request.needs is not None and request.needs not in CONDITIONS:
        yield f"unknown condition {request.needs!r}; known are {', '.join(CONDITIONS)}"


def _assumption_mistakes(
    assumption: Assumption, requests: dict[str, ProbeRequest], earlier: dict[str, Assumption]
) -> Iterator[tuple[str, str]]:
    if assumption.id in earlier:
        yield "id", "another assumption has this id"
    if not assumption.requests:
        yield "requests", "an assumption observes at least one request"
    for name in assumption.requests:
        if name not in requests:
            yield "requests", f"unknown request {name!r}"
    if (assumption.expected is msgspec.UNSET) is (assumption.pattern is None):
        yield "expected", "either expected or pattern is given"
    passive = [text for check in assumption.passive for text in (check.each, check.holds, *(check.pairs or ()))]
    for key, text in (("observe", assumption.observe), *(("passive", text) for text in passive if text)):
        try:
            expressions.compile_expression(text)
        except ValueError as error:
            yield key, f"{text}: {error}"
