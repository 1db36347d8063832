"""Explain: what becomes of a v3 request, from a URL, a curl command or a request line. Sends nothing upstream."""

from typing import TYPE_CHECKING, Literal, cast, get_args

import msgspec

from proxy import errors
from proxy.explain.explanation import Explanation
from proxy.web.admin.page import AdminContext, AdminPage, PageData, PageParameter, Query

if TYPE_CHECKING:
    from proxy.explain.explainer import Explainer

Language = Literal["python", "curl"]  # of programs; imported with the first explanation
LANGUAGES: tuple[Language, ...] = get_args(Language)
TEXT_MAX = 70_000  # characters: a request line has at most 66 KiB of query
EXPLAINED_MAX = 5  # requests of one text; a HAR file may have thousands


class ExplainPage(PageData, frozen=True, kw_only=True):
    """Explanation of a request.

    `request` is the request without its API key; empty before one is explained, and where it could not be read: what
    is pasted may hold a key anywhere. `application` executes it, empty for that of the API key; `applications`
    are the choices. `problem` says why nothing is explained. `omitted` is the number of further requests in the text.
    `language` is that of `program`; `no_program` says why there is none.
    """

    request: str = ""
    application: str = ""
    applications: tuple[str, ...] = ()
    language: str = ""
    languages: tuple[str, ...] = LANGUAGES
    problem: str | None = None
    explanations: tuple[Explanation, ...] = ()
    omitted: int = 0
    program: str | None = None
    no_program: str | None = None


async def _data(context: AdminContext, query: Query) -> ExplainPage:
    gateway = context.service.gateway
    names = tuple(gateway.settings.applications)
    text, application, language = (query.get(name, "") for name in ("request", "application", "language"))
    if language not in ("", *LANGUAGES):
        raise errors.BadRequest(f"language is one of {', '.join(LANGUAGES)}")
    empty = ExplainPage(applications=names, application=application if application in names else "", language=language)
    if not text.strip():
        return empty
    try:
        # No message repeats anything of the text.
        return await context.explaining.run(
            gateway, lambda explainer: _explained(explainer, text, application or None, empty)
        )
    except (errors.SourceError, errors.ConfigError) as error:
        return msgspec.structs.replace(empty, problem=error.message)


def _explained(explainer: "Explainer", text: str, application: str | None, empty: ExplainPage) -> ExplainPage:
    from proxy.explain import inputs

    if len(text) > TEXT_MAX:
        raise errors.SourceError(
            f"the text is longer than {TEXT_MAX:,} characters; `v3bridge explain FILE` reads larger ones"
        )
    requests = inputs.read_text(text)
    explained = tuple(explainer.explain_input(request, application) for request in requests[:EXPLAINED_MAX])
    first = explained[0]
    program, no_program = _program(explainer, explained, empty.language)
    return msgspec.structs.replace(
        empty,
        request=first.request,
        # The key is not repeated: without a choice, the form that is sent again would be that of the first application.
        application=empty.application or (first.client.application if first.client else ""),
        explanations=explained,
        omitted=len(requests) - len(explained),
        program=program,
        no_program=no_program,
    )


def _program(
    explainer: "Explainer", explained: tuple[Explanation, ...], language: str
) -> tuple[str | None, str | None]:
    """Return the program, or the reason why there is none."""
    if not language:
        return None, None
    from proxy.explain.programs import program
    from proxy.explain.programs.flows import NoProgramError

    if len(explained) > 1:
        return None, "a program is written for one request at a time"
    try:
        return program.write(explainer, explained[0], cast(Language, language)), None
    except NoProgramError as refusal:
        return None, str(refusal)


PAGE = AdminPage(
    "explain",
    "Explain",
    "What becomes of a v3 request: GraphQL operations, cost in parts, caches and the source of every field.",
    ExplainPage,
    _data,
    parameters=(
        PageParameter("request", "URL, path, request line, curl command or HAR entry."),
        PageParameter(
            "application", "Application or API key that executes it; that of the request's API key if omitted."
        ),
        PageParameter("language", f"Also write a program that asks the Nexar API: {', '.join(LANGUAGES)}."),
    ),
    posts=True,
)
