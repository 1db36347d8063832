"""Entry point of `v3bridge`: its commands, its help, and the output of configuration errors."""

import importlib
import json
import os
import sys
import traceback
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer import core

from proxy import __version__, cli, errors, kit
from proxy.cli import commands

COMMANDS = {
    "init": ("Start", "write a configuration for your Nexar account", "proxy.cli.installation"),
    "serve": ("", "start the proxy; without an account on the sandbox", "proxy.cli.main"),
    "doctor": ("", "check an installation, and say what to do; 0 parts", "proxy.cli.installation"),
    "explain": ("Migrate", "which programs of a log work, and what it costs", "proxy.cli.explain"),
    "compare": ("", "replay requests on both services: may I switch?", "proxy.tools.compare.command"),
    "conform": ("", "test what is assumed about the Nexar services", "proxy.tools.conform.command"),
    "status": ("Operate", "the running service on one screen", "proxy.cli.operators"),
    "usage": ("", "parts used and left; who still calls", "proxy.cli.operators"),
    "config": ("", "the settings, and where each comes from", "proxy.cli.installation"),
    "sheet": ("Spreadsheets", "fill a parts list with prices, stock and more", "proxy.tools.sheet.command"),
    "sandbox": ("Try", "run the simulated Nexar services by themselves", "proxy.cli.main"),
}
"""Commands, and groups of them, by name: what begins with it in the help, what people do with it, and the module, which
is imported when the command is called, because all together take as long again as the call of one."""

EXTRAS = {"nexar_sandbox": "sandbox", "redis": "redis", "openpyxl": "sheet"}
"""Extra of pyproject.toml by the package that it installs."""

NOT_RUN = {"compare": 3, "conform": 2, "sheet": 2}
"""Exit code of commands that could not run, whatever the reason, where 1 is a result; of compare, 2 is one, too."""

VERSION_HELP = "Print the versions of the program, of its schema and of its mappings, and exit."

OF_ANOTHER_PROGRAM: dict[str, Any] = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    "add_help_option": False,
}


class CommandGroup(core.TyperGroup):
    """Group of commands. Options without a value are shown without a type, which would be `<bool>`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        for parameter in [] if command is None else command.get_params(ctx):
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return command


class ProgramGroup(CommandGroup):
    """All commands. The help is one screen: a line for each, by what people want to do."""

    def format_help(self, _: Any, formatter: Any) -> None:
        lines = ["Usage: v3bridge COMMAND [OPTIONS]", str(self.help), ""]
        lines += [f"{group:<14}{name:<10}{text}" for name, (group, text, _) in COMMANDS.items()]
        lines += ["v3bridge COMMAND --help prints its options, v3bridge --version the version."]
        formatter.write("\n".join(lines) + "\n")


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
        module = importlib.import_module(COMMANDS[name][2])
        command = getattr(module, name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=CommandGroup)
        else:
            app.command(name, **(OF_ANOTHER_PROGRAM if name == "sandbox" else {}))(command)
    return app


def _root(context: typer.Context, version: bool = typer.Option(False, "--version", help=VERSION_HELP)) -> None:
    if version:
        # Short digests of what decides on v3 responses beside the program.
        files = [file for file in kit.shipped("mappings").rglob("*") if file.is_file()]
        schema = kit.digest(file for file in files if file.name == kit.SCHEMA)[:12]
        mappings = kit.digest(file for file in files if file.name != kit.SCHEMA)[:12]
        typer.echo(f"v3bridge {__version__}\nschema   {schema}\nmappings {mappings}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def serve(
    config_file: commands.ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of listen.host.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of listen.port; 0: a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes, instead of listen.workers.")] = None,
    admin_port: commands.AdminPort = None,
) -> None:
    """Start the proxy and print a curl line that works, and the address of the status for operators."""
    given = (("host", host), ("port", port), ("workers", workers))
    listen = {name: value for name, value in given if value is not None}
    options = json.dumps({"config_file": config_file and str(config_file), "listen": listen, "admin_port": admin_port})
    os.execve(sys.executable, sys.orig_argv, {**os.environ, cli.SERVE: options})  # noqa: S606 - this very program


def sandbox(context: typer.Context) -> None:
    """Run nexar-sandbox, the simulated Nexar services, by itself; it takes the options of that program."""
    from nexar_sandbox import command

    command.main(context.args, context.command_path, "v3bridge")


def main() -> None:
    """Run the command line. Each mistake of the user's is one line. The exit code is 2, or 1 where the store fails, or
    that of NOT_RUN."""
    word = "".join(sys.argv[1:2])
    is_help = word in ("", "-h", "--help", "--version") and "_V3BRIDGE_COMPLETE" not in os.environ
    names: Iterable[str] = [word] if word in COMMANDS else () if is_help else COMMANDS
    not_run = NOT_RUN.get(word)
    try:
        # Not standalone: typer would print usage and boxes around its errors.
        sys.exit(program(names)(standalone_mode=False))
    except errors.StartError as error:
        message, code = error.message, 1 if type(error) is errors.StartError else 2
    except typer.TyperException as error:
        message, code = error.format_message().rstrip("."), error.exit_code
    except typer.Abort:
        message, code = "aborted", 1
    except Exception as error:
        if not (isinstance(error, ModuleNotFoundError) and error.name in EXTRAS):
            if not_run is None:
                raise
            traceback.print_exc()
            sys.exit(not_run)
        message, code = f"{error.name} is not installed; {kit.install_line(EXTRAS[error.name])}", 2
    kit.print_mistake(message)
    sys.exit(not_run or code)
