"""Explanations for the admin interface: of pasted text, which may be anything. Sends nothing."""

import asyncio
import threading
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from proxy import errors
from proxy.explain.explanation import Explanation
from proxy.gateway.assembly import Gateway

if TYPE_CHECKING:
    from proxy.explain.explainer import Explainer
    from proxy.explain.inputs import InputRequest

Language = Literal["python", "curl"]  # of programs; imported with the first explanation
LANGUAGES: tuple[Language, ...] = get_args(Language)
TEXT_MAX = 70_000  # characters: a request line has at most 66 KiB of query
EXPLAINED_MAX = 5  # requests of one text; a HAR file may have thousands


class ExplainedText(NamedTuple):
    """Explanations of the first requests of a text, and the number of those `omitted`. `program` asks the Nexar API
    directly; `no_program` says why there is none."""

    explanations: tuple[Explanation, ...]
    omitted: int
    program: str | None
    no_program: str | None


class Explaining:
    """Explains with the configuration and mappings of the gateway that serves."""

    def __init__(self) -> None:
        self._gateway: Gateway | None = None
        self._explainer: Explainer | None = None
        self._lock = threading.Lock()  # an explainer keeps compiled documents, and is not made for several threads

    async def explain(
        self, gateway: Gateway, text: str, application: str | None, language: Language | None
    ) -> ExplainedText:
        """Explain the requests of a text. Raises SourceError for one that has none, ConfigError for an unknown
        application. No message repeats anything of the text."""
        if len(text) > TEXT_MAX:
            raise errors.SourceError(
                f"the text is longer than {TEXT_MAX:,} characters; `v3bridge explain FILE` reads larger ones"
            )
        # In a thread: documents are compiled and printed, which would delay the requests of this worker.
        return await asyncio.to_thread(self._explain, gateway, text, application, language)

    def _explain(
        self, gateway: Gateway, text: str, application: str | None, language: Language | None
    ) -> ExplainedText:
        from proxy.explain import inputs

        requests = inputs.read_text(text)
        with self._lock:
            explainer = self._explainer_of(gateway)
            explained = tuple(_explanation(explainer, request, application) for request in requests[:EXPLAINED_MAX])
            return ExplainedText(explained, len(requests) - len(explained), *_program(explainer, explained, language))

    def _explainer_of(self, gateway: Gateway) -> "Explainer":
        from proxy.explain.explainer import Explainer

        if self._explainer is None or self._gateway is not gateway:
            self._gateway = gateway
            self._explainer = Explainer(gateway.settings, gateway.mappings)
        return self._explainer


def _explanation(explainer: "Explainer", source: "InputRequest", application: str | None) -> Explanation:
    if source.request is None:
        return explainer.explain_unknown_path(source.path, source.method)
    return explainer.explain(source.request, apikey=source.apikey, application=application, method=source.method)


def _program(
    explainer: "Explainer", explained: tuple[Explanation, ...], language: Language | None
) -> tuple[str | None, str | None]:
    if language is None:
        return None, None
    from proxy.explain.programs import program
    from proxy.explain.programs.flows import NoProgramError

    if len(explained) > 1:
        return None, "a program is written for one request at a time"
    try:
        return program.write(explainer, explained[0], language), None
    except NoProgramError as refusal:
        return None, str(refusal)
