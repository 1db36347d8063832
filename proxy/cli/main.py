"""Entry point of `v3bridge`: its commands, its help, and the output of configuration errors."""

import gc
import importlib
import os
import re
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer import core

from proxy import __version__, errors
from proxy.kit import extras, shipped
from proxy.kit.wording import printable

COMMANDS = {
    "init": "proxy.cli.init.init",
    "serve": "proxy.cli.serve.serve",
    "status": "proxy.cli.status.status",
    "config": "proxy.cli.config.config",
    "doctor": "proxy.cli.doctor.doctor",
    "sandbox": "proxy.cli.sandbox.sandbox",
    "explain": "proxy.cli.explain.explain",
    "usage": "proxy.cli.usage.usage",
    "compare": "proxy.tools.compare.command.compare.compare",
    "conform": "proxy.tools.conform.command.conform",
    "sheet": "proxy.tools.sheet.command.sheet.app",
}
"""Commands, and groups of them, by name: each is imported when it is called, because all together take as long again as
the call of one."""

_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)")
_NUMBER_ERROR = re.compile("(int|float)_.*|.*_than_equal")  # types of pydantic's errors about numbers
_DATE_ERROR = "does not match the formats '%Y-%m-%d'"
_OPTION = re.compile(r"'(-[\w-]+)'")  # typer quotes options, in its own messages only

EXTRAS = {
    "nexar_sandbox": "sandbox",
    "proxy.tools.sheet": "sheet",
    "proxy.tools.conform": "conform",
    "proxy.store": "redis",
}
"""Extra of pyproject.toml by the package whose imports need it."""

VERSION_HELP = "Print the versions of the program, of its schema and of its mappings, and exit."


class CommandGroup(core.TyperGroup):
    """Group of commands. Options without a value are shown without a type, which would be `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _hide_types_of_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            # The option --help is made here and kept; its names are those of the whole program.
            _hide_types_of_flags(command.get_params(ctx))
        return command


class ProgramGroup(CommandGroup):
    """All commands. The help is one screen: a line for each command in HELP, by what people want to do."""

    HELP: ClassVar[dict[str, dict[str, str]]] = {
        "Start": {
            "init": "write a configuration for your Nexar account",
            "serve": "start the proxy; without an account on the sandbox",
            "doctor": "check an installation, and say what to do; 0 parts",
        },
        "Migrate": {
            "explain": "show how a request is translated, and its cost",
            "compare": "replay requests on both services: may I switch?",
            "conform": "test what is assumed about the Nexar services",
        },
        "Operate": {
            "status": "the running service on one screen",
            "usage": "parts used and left; who still calls",
            "config": "the settings, and where each comes from",
        },
        "Spreadsheets": {"sheet": "fill a parts list with prices, stock and more"},
        "Try": {"sandbox": "run the simulated Nexar services by themselves"},
    }

    def format_help(self, _: Any, formatter: Any) -> None:
        lines = ["Usage: v3bridge COMMAND [OPTIONS]", str(self.help), ""]
        for group, commands in self.HELP.items():
            for place, (name, text) in enumerate(commands.items()):
                lines.append(f"{group if place == 0 else '':<14}{name:<10}{text}")
        lines += ["v3bridge COMMAND --help prints its options, v3bridge --version the version."]
        formatter.write("\n".join(lines) + "\n")


def _hide_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def program(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the program with these commands. Imports them."""
    app = typer.Typer(
        name="v3bridge",
        cls=ProgramGroup,
        help="Keep programs of the retired v3 parts API working on the Nexar GraphQL API.",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_root)
    for name in names:
        place, _, attribute = COMMANDS[name].rpartition(".")
        module = importlib.import_module(place)
        command = getattr(module, attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=CommandGroup)
        else:
            app.command(name, **getattr(module, "COMMAND", {}))(command)
    app.command("help")(_help)
    return app


def _called(words: list[str]) -> Iterable[str]:
    """Return the commands that a command line needs: the one that it calls, none for the program's help, else all."""
    if words and words[0] in COMMANDS:
        return words[:1]
    is_help = words[:1] in ([], ["-h"], ["--help"], ["--version"]) and "_V3BRIDGE_COMPLETE" not in os.environ
    return () if is_help else COMMANDS


def _help(
    context: typer.Context,
    command: Annotated[list[str] | None, typer.Argument(help="The command; all are listed if omitted.")] = None,
) -> None:
    """Print the commands, or the options of a command."""
    context.find_root().command([*(command or ()), "--help"], standalone_mode=False)


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help=VERSION_HELP),
) -> None:
    if version:
        typer.echo(_versions())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def _versions() -> str:
    """Return the versions of the program, and of the files that decide on v3 responses beside it."""
    schema, mappings = shipped.versions()
    lines = (("v3bridge", __version__), ("schema", schema), ("mappings", mappings))
    return "\n".join(f"{name:<9}{value}" for name, value in lines)


def main() -> None:
    """Run the command line. Each mistake in options, the configuration, mappings or the port is one line; the exit
    code is 2."""
    _open_standard_streams()
    # Imports create 90 000 objects, and a large response more than the default: a collection would delay all others.
    gc.set_threshold(25_000, 40, 20)
    try:
        # Not standalone: typer would print usage and boxes around its errors.
        code = program(_called(sys.argv[1:]))(standalone_mode=False)
    except errors.StartError as error:
        _end(error.message, 2)
    except ModuleNotFoundError as error:
        missing = _missing_extra(error)
        # Not an optional package: the traceback is needed.
        if missing is None:
            raise
        _end(missing.message, 2)
    except typer.TyperException as error:
        _end(_usage_message(error), error.exit_code)
    except typer.Abort:
        _end("aborted", 1)
    sys.exit(code)


def _open_standard_streams() -> None:
    # The number of a closed stream would be given to a socket, which would then get what is printed.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _end(message: str, code: int) -> NoReturn:
    for line in printable(message).splitlines():  # none where the help has been printed instead
        typer.echo(f"v3bridge: {line}", err=True)
    sys.exit(code)


def _usage_message(error: typer.TyperException) -> str:
    """Return the message of a mistake in a command line, in the style of the program's own."""
    if extra := _EXTRA.fullmatch(error.message):
        return _extra_argument(extra[1], error)
    if (number := _wrong_number(error)) is not None:
        error.message = number
    message = _OPTION.sub(r"\1", error.format_message()).replace("Value error, ", "")
    return message.replace(_DATE_ERROR, "is not a date such as 2026-11-01").rstrip(".")


def _extra_argument(text: str, error: Any) -> str:
    """Return the message about arguments that a command does not take."""
    command = error.ctx.command
    file = next((word for word in text.split() if word.endswith((".yaml", ".yml"))), None)
    has_config = any("--config" in parameter.opts for parameter in command.params)
    meant = f"; did you mean --config {file}?" if file and has_config else ""
    return f"unexpected argument of {command.name}: {text}{meant}"


def _wrong_number(error: typer.TyperException) -> str | None:
    """Return the message about a value that is no number, or out of its range; None for other mistakes."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):  # only pydantic's exceptions have it
        return None
    details, parameter = cause.errors()[0], getattr(error, "param", None)
    if not _NUMBER_ERROR.fullmatch(details["type"]):
        return None
    kind = "whole number" if details["type"].startswith("int") else "number"
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    bounds = "" if least is None else f" of {least:g} or more" if most is None else f" from {least:g} to {most:g}"
    return f"{details['input']} is not a {kind}{bounds}"


def _missing_extra(error: ModuleNotFoundError) -> errors.StartError | None:
    """Return the error that names the missing extra; None if `error` has another cause."""
    importer = "nexar_sandbox" if error.name == "nexar_sandbox" else _importer(error.__traceback__)
    for package, extra in EXTRAS.items():
        if f"{importer}.".startswith(f"{package}."):
            return errors.StartError(f"{error.name} is not installed; {extras.install_line(extra)}")
    return None


def _importer(traceback: TracebackType | None) -> str:
    """Return the name of the innermost module of this program in a traceback."""
    importer = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        importer = name if name.startswith(("proxy.", "nexar_sandbox.")) else importer
        traceback = traceback.tb_next
    return importer
