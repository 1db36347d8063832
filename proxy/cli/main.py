"""`v3bridge`: the commands, and how a mistake in the set-up is shown."""

import sys

import typer

from proxy import __version__, errors
from proxy.cli import compare, mappings, record, sandbox, serve, shadow, surface, uids, usage

app = typer.Typer(
    name="v3bridge",
    help="Programs written for the retired v3 parts API go on working, unchanged, on the GraphQL service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("sandbox")(sandbox.sandbox)
app.command("mappings")(mappings.mappings)
app.command("surface")(surface.surface)
app.command("usage")(usage.usage)
app.command("compare")(compare.compare)
app.command("record")(record.record)
app.command("shadow")(shadow.shadow)
app.add_typer(uids.app, name="uids")


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"v3bridge {__version__}")
        raise typer.Exit


def main() -> None:
    """The entry point. A mistake in configuration, mappings or the port is one clear line and exit code 2."""
    try:
        app()
    except errors.StartError as error:
        typer.echo(f"v3bridge: {error.message}", err=True)
        sys.exit(2)
