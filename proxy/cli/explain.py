"""`v3bridge explain`: what becomes of a v3 request. Sends nothing."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import core

from proxy.cli import option_fields, shown
from proxy.config import loader
from proxy.kit import shipped

if TYPE_CHECKING:
    from proxy.explain.explanation import ExplainedFile, Explanation

STDIN = "-"


class ExplainCommand(core.TyperCommand):
    """Command whose INPUT can be the words of a curl command, as people paste it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; what follows the word `curl` is no option, unless it is the value of --as or another."""
        with_value = {name for each in self.params if not getattr(each, "is_flag", True) for name in each.opts}
        for number, word in enumerate(args):
            if word == "--":
                break
            if word == "curl" and (number == 0 or args[number - 1] not in with_value):
                args = [*args[:number], "--", *args[number:]]
                break
        return super().parse_args(ctx, args)


COMMAND = {"cls": ExplainCommand}


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of the command."""

    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="A URL, a path, a curl command, a HAR entry, a file of requests as for `compare --requests`, "
            "a GraphQL document of today's API or of v4, or - for standard input.",
        ),
    ] = None
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Instead of INPUT: which of my programs will break, by the requests that the running service has "
            "recorded, with each client's unsupported uses.",
        ),
    ] = False
    config_file: option_fields.ConfigFile = None
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Execute as this application, or application/key; else as their API key's."),
    ] = None
    kind: Annotated[
        str | None, typer.Option(help="What kind of file INPUT is, where it is not detected, such as log, json, har.")
    ] = None
    plan: Annotated[bool, typer.Option("--plan", help="Show everything but documents; the default.")] = False
    queries: Annotated[
        bool, typer.Option("--queries", help="Show the documents and variables of the GraphQL operations, too.")
    ] = False
    language: Annotated[
        Literal["python", "curl"] | None,
        typer.Option(
            "--as",
            help="Print what asks the Nexar API: a Python program that prints v3's fields, or its requests by curl.",
        ),
    ] = None
    fields: Annotated[
        str | None,
        typer.Option(
            help="Fields that the program prints, such as mpn,offers.prices, or a file: a v3 response, a recording "
            "or a HAR file; those of the request if omitted."
        ),
    ] = None
    output: Annotated[
        Path | None, typer.Option(help="Write the programs to this folder, one for each kind of request.")
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with --live.")] = False


def run(options: ExplainOptions) -> None:
    """Explain v3 requests: how they are understood, the GraphQL operations, their cost, the source of each field."""
    if options.live:
        from proxy.cli import live_uses

        live_uses.show(options.config_file, given=bool(options.given), as_json=options.as_json, as_csv=options.as_csv)
        return
    if options.as_csv:
        raise typer.BadParameter("needs --live", param_hint="--csv")
    if not options.given:
        raise typer.BadParameter("is missing: a request, a file of requests, or --live", param_hint="INPUT")
    if options.plan and options.queries:
        raise typer.BadParameter("choose one of --plan and --queries", param_hint="--queries")
    _check_program_options(options)
    settings = loader.load(options.config_file or shipped.path("config.yaml"), os.environ, upstream=False)
    # A curl command may come as one text, or as its words.
    text = options.given[0] if len(options.given) == 1 else shlex.join(options.given)
    from proxy.cli import explained_documents
    from proxy.explain import inputs
    from proxy.explain.explained_input import InputExplainer
    from proxy.explain.explainer import Explainer

    given = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if text == STDIN else text
    content = inputs.text_of_file(Path(text)) if inputs.is_file(text) else given
    document = explained_documents.read(content or "")
    if document is not None:
        others = {"--as": options.language, "--queries": options.queries}
        explained_documents.check(others)
        explained_documents.show(explained_documents.explain(document, settings.upstream), options.as_json)
        return
    explainer = Explainer(settings)
    reader = InputExplainer(explainer, options.application, options.kind)
    explained = reader.file(Path(text)) if inputs.is_file(text) else reader.text(given)
    if options.language:
        from proxy.cli import explained_programs

        explained_programs.show(explained, explainer, options.language, options.fields, options.output)
    else:
        _print(explained, options)


def _check_program_options(options: ExplainOptions) -> None:
    """Raise BadParameter for options of programs without a language, and for others beside it."""
    if options.language is None and (options.fields is not None or options.output):
        option = "--output" if options.fields is None else "--fields"
        raise typer.BadParameter("it is for programs; choose a language with --as", param_hint=option)
    if options.language and (options.as_json or options.plan or options.queries):
        raise typer.BadParameter("a program cannot be combined with --json, --plan and --queries", param_hint="--as")


explain = option_fields.command(ExplainOptions, run)


def _print(explained: "list[Explanation] | ExplainedFile", options: ExplainOptions) -> None:
    from proxy.cli import explained as output

    if options.as_json:
        value = explained[0] if isinstance(explained, list) and len(explained) == 1 else explained
        shown.print_json(value)
    elif isinstance(explained, list):
        for each in explained:
            output.show(each, options.queries)
    else:
        output.show_file(explained, options.queries)
