"""`v3bridge explain`: what becomes of the requests of a log, or of one request. Sends nothing."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

import typer

from proxy import config, errors
from proxy.cli import option_fields, shown
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.explain.log import ExplainedLog
    from proxy.explain.request import Explained, Explainer

NO_REQUEST = "the input is neither a request nor a file: give a log, a URL, or a path such as /v3/parts/match?queries=…"
TODO = {
    "refused": "refused: change the program, as the message says",
    "loses": "loses fields or parameters: see whether the program minds",
    "works": "works: nothing to do",
}


def explain(
    given: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help="A file of requests: access log, HAR, JSON lines, URLs; or one URL."),
    ] = None,
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
    source: Annotated[
        str | None,
        typer.Option(metavar="OBJECT", help="Instead: print the compiled mapping of a v3 object, such as Part."),
    ] = None,
) -> None:
    """Show which requests of a log work, lose fields or are refused, and what a month costs; or explain one URL.

    The exit code is 1 if a request is refused.
    """
    from proxy.explain import log, request
    from proxy.mapping import compiler

    if (given is None) == (source is None):
        raise typer.BadParameter("give a file, a URL, or --source OBJECT", param_hint="INPUT")
    explainer = request.Explainer(option_fields.configured(config_file))
    if given is None:
        if source not in explainer.mappings.rules:
            known = ", ".join(sorted(explainer.mappings.rules))
            raise typer.BadParameter(f"no mapping describes {source!r}; there are {known}", param_hint="--source")
        typer.echo(compiler.source_of(explainer.mappings, config.FEATURES, source), nl=False)
        return
    if Path(given).is_file():
        in_file = asyncio.run(log.explain(explainer, Path(given)))
        shown.print_result(in_file, _lines_of_log(in_file), as_json)
        raise typer.Exit(int(any(each.refused for each in in_file.programs)))
    one = asyncio.run(_explain_url(explainer, given.strip("\"'<> ")))
    shown.print_result(one, _lines(one), as_json)
    raise typer.Exit(int(one.verdict == "refused"))


async def _explain_url(explainer: "Explainer", text: str) -> "Explained":
    """Explain a URL, a path, or a request line. Raises SourceError for a text that may be a file that is not there."""
    from proxy.explain.request import Explained
    from proxy.traffic import logs, v3_request
    from proxy.v3 import endpoints

    method, target = logs.request_line(text)
    try:
        path, query, apikey = v3_request.parse_target(target)
    except ValueError:
        path = target.partition("?")[0]
        if "://" in path:
            path = f"/{path.partition('://')[2].partition('/')[2]}"
        if not path.startswith("/"):
            raise errors.SourceError(NO_REQUEST) from None
        # The path, which may hold an API key, is not repeated.
        return Explained(request="", status=404, error=endpoints.no_such_path(path))
    request = v3_request.V3Request(path, query)
    return (await explainer.explain(request, explainer.client(apikey), apikey, method))[0]


def _lines(explained: "Explained") -> Iterator[shown.Line]:
    # Decoded: a JSON list of queries is unreadable otherwise.
    yield unquote(explained.request) or "(a path that v3 never had)"
    if explained.error:
        yield f"refused with {explained.status}: {explained.error}"
        yield "Nothing is sent, and nothing is paid."
        return
    yield f"{explained.endpoint}, executed as {explained.client}"
    yield from (f"a query is refused: {mistake}" for mistake in explained.mistakes)
    for operation in explained.operations:
        yield f"sends {operation.name}, up to {counted(operation.parts_max, 'part')}, with"
        yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in operation.variables.items())
    yield from (f"sends {name}, free of charge, unless it did so before" for name in explained.free)
    likely = "" if explained.parts_likely == explained.parts_max else f", likely {explained.parts_likely:,}"
    free = "; free while it is stored, for 23.5 hours" if explained.parts_max else ""
    yield f"At most {counted(explained.parts_max, 'part')}{likely}{free}."
    yield from (f"ignored: {each}" for each in explained.ignored)
    yield from (f"ignored, as v3 did: {each}" for each in explained.unknown)
    yield from (f"empty: {each}" for each in explained.sourceless)


def _lines_of_log(explained: "ExplainedLog") -> Iterator[shown.Line]:
    programs = explained.programs
    works, loses, refused = (sum(getattr(each, name) for each in programs) for name in ("works", "loses", "refused"))
    yield (
        f"{counted(explained.requests, 'request')} of {counted(len(programs), 'program')}: {works:,} work, {loses:,} "
        f"lose fields or parameters, {refused:,} are refused."
    )
    yield from (f"left out: {number} × {reason}" for reason, number in explained.skipped.items())
    costs = [
        {"name": "without v3bridge", "day": explained.day_without_proxy, "month": explained.month_without_proxy},
        {"name": "with v3bridge", "day": explained.day, "month": explained.month},
    ]
    yield shown.table(costs, {"parts at most": "name", "a day": "day", "30 days": "month"})
    yield shown.table(programs, {"program": "name"} | {name: name for name in ("works", "loses", "refused", "parts")})
    columns = {"requests": "requests", "program": "program", "reason": "reason", "for example": "place"}
    for verdict, todo in TODO.items():
        if kinds := [each for each in explained.kinds if each.verdict == verdict]:
            yield shown.table(kinds, {todo: "endpoint", **columns})
