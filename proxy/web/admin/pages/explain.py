"""Explain: what becomes of a v3 request, from a URL, a curl command or a request line. Sends nothing upstream."""

from typing import cast

from proxy import errors
from proxy.explain.explanation import Explanation
from proxy.web.admin.context import AdminContext
from proxy.web.admin.explaining import LANGUAGES, Language
from proxy.web.admin.page import AdminPage, PageData, PageParameter, Query


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
        explained = await context.explaining.explain(
            gateway, text, application or None, cast(Language, language) if language else None
        )
    except (errors.SourceError, errors.ConfigError) as error:
        return ExplainPage(applications=names, application=empty.application, language=language, problem=error.message)
    first = explained.explanations[0]
    return ExplainPage(
        request=first.request,
        # The key is not repeated: without a choice, the form that is sent again would be that of the first application.
        application=empty.application or (first.client.application if first.client else ""),
        applications=names,
        language=language,
        explanations=explained.explanations,
        omitted=explained.omitted,
        program=explained.program,
        no_program=explained.no_program,
    )


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
