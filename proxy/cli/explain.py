"""`v3bridge explain`: what becomes of a v3 request. Sends nothing."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxy import config
from proxy.cli import option_fields, shown
from proxy.config import loader
from proxy.kit import shipped

if TYPE_CHECKING:
    from proxy.explain.explainer import Explainer

STDIN = "-"


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of the command."""

    given: Annotated[
        str | None,
        typer.Argument(
            metavar="INPUT",
            help="A URL, a path, a request line, a file of requests as for `compare --requests`, or - for standard "
            "input.",
        ),
    ] = None
    config_file: option_fields.ConfigFile = None
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Execute as this application, or application/key; else as their API key's."),
    ] = None
    queries: Annotated[
        bool, typer.Option("--queries", help="Show the documents and variables of the GraphQL operations, too.")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False
    source: Annotated[
        str | None,
        typer.Option(
            metavar="OBJECT",
            help="Instead of INPUT: print the compiled mapping functions of a v3 object, such as Part.",
        ),
    ] = None


def run(options: ExplainOptions) -> None:
    """Explain v3 requests: how they are understood, the GraphQL operations, their cost, the source of each field."""
    if (options.given is None) == (options.source is None):
        raise typer.BadParameter("give a request, a file of requests, or --source OBJECT", param_hint="INPUT")
    settings = loader.load(options.config_file or shipped.path("config.yaml"), os.environ, upstream=False)
    from proxy.explain.explainer import Explainer

    explainer = Explainer(settings)
    if options.source is not None:
        _print_source(explainer, options.source)
    elif options.given is not None:
        _explain(explainer, options.given, options)


explain = option_fields.command(ExplainOptions, run)


def _explain(explainer: "Explainer", given: str, options: ExplainOptions) -> None:
    from proxy.cli import explained as output
    from proxy.explain import explained_input
    from proxy.explain.explanation import ExplainedFile, Explanation

    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if given == STDIN else given
    explained: Explanation | ExplainedFile
    if _is_file(text):
        explained = explained_input.explain_file(explainer, Path(text), options.application)
    else:
        explained = explained_input.explain_text(explainer, text, options.application)
    if options.as_json:
        shown.print_json(explained)
    elif isinstance(explained, Explanation):
        output.show(explained, options.queries)
    else:
        output.show_file(explained, options.queries)


def _is_file(text: str) -> bool:
    """Return whether an input names a file: no request can be the name of an existing one."""
    try:
        return "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):
        return False


def _print_source(explainer: "Explainer", name: str) -> None:
    from proxy.mapping import compiler

    names = sorted(explainer.mappings.rules)
    if name not in names:
        raise typer.BadParameter(f"no mapping describes {name!r}; there are {', '.join(names)}", param_hint="--source")
    typer.echo(compiler.source_of(explainer.mappings, config.FEATURES, name), nl=False)
