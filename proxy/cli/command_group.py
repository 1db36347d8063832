"""Groups of commands whose help says nothing of types where there is nothing to type; the help of the program."""

from typing import Any, ClassVar

from typer import core


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
            "record": "record responses, to compare without the old service",
            "shadow": "compare live traffic: status, on, off",
            "conform": "test what is assumed about the Nexar services",
            "uids": "make tables of v3 uids that programs have stored",
            "mappings": "print how each v3 field gets its value",
        },
        "Operate": {
            "status": "the running service on one screen",
            "usage": "parts used and left; who still calls",
            "config": "the settings, and where each comes from",
            "reload": "apply a changed configuration",
            "cache": "sizes of the shared cache; clear it",
            "alerts": "list receivers and open alerts; send a test",
        },
        "Spreadsheets": {"sheet": "fill a parts list with prices, stock and more"},
        "Try": {"sandbox": "run the simulated Nexar services by themselves"},
    }

    def format_help(self, _: Any, formatter: Any) -> None:
        lines = ["Usage: v3bridge COMMAND [OPTIONS]", "", str(self.help), ""]
        for group, commands in self.HELP.items():
            for place, (name, text) in enumerate(commands.items()):
                lines.append(f"{group if place == 0 else '':<14}{name:<10}{text}")
        lines += ["", "v3bridge COMMAND --help prints its options, v3bridge --version the version."]
        formatter.write("\n".join(lines) + "\n")


def _hide_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
