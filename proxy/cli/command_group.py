"""Groups of commands whose help says nothing of types where there is nothing to type."""

from typing import Any

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


def _hide_types_of_flags(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
