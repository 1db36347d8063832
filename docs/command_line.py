"""The reference of the command line, made of the program's own help.

`python -m docs` writes docs/commands.md; tests/project holds the page to it.
"""

import enum
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, ParameterInfo

from nexar_sandbox import command as sandbox_command
from proxy.cli import main

HEAD = """# Commands

For those who type them: every command and option, as `v3bridge COMMAND --help` and `man v3bridge` show them.

- `v3bridge --version` prints the version, and digests of schema and mappings. Put all three lines into a report.
- `v3bridge --install-completion` installs completion for bash, zsh or fish.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | a result that needs you: not ready, a failed check, a refused request, lines that are not found or in doubt, a store that fails |
| 2 | it could not run: a mistake in options or configuration, or a cost that you declined; no restart cures it |
| 3 | of `conform` and `sheet fill`: nothing could be tested or used |

`v3bridge compare` has [its own](may-i-switch.md#the-verdict). These options are the same in many commands:

"""
TABLE = "| option | meaning |\n|---|---|\n"
SHARED_BY = 5  # commands, from which on an option stands above all of them
ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "\n": " "})


def commands(app: typer.Typer, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command, with all words of its name, in the order of the help."""
    for each in app.registered_commands:
        assert each.callback is not None
        yield f"{name} {each.name or each.callback.__name__}", each.callback
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{name} {group.name}")


class Parameter(NamedTuple):
    """An argument or option as people type it. `default` is "required" where there is none."""

    names: tuple[str, ...]
    is_argument: bool
    value: str
    default: str
    help: str


def _section(name: str, command: Callable[..., Any], known: dict[Parameter, str]) -> str:
    """Return what a command does, and a table of its parameters; of known ones only the names, by where they stand."""
    text = f"\n## {name}\n\n{inspect.getdoc(command)}\n"
    declared = parameters(command)
    rows = [_row(parameter) for parameter in declared if parameter not in known]
    text += f"\n{TABLE}{''.join(rows)}" if rows else ""
    also: dict[str, list[str]] = {}
    for parameter in declared:
        if parameter in known:
            also.setdefault(known[parameter], []).append(_names(parameter))
        known.setdefault(parameter, f" as in [{name}](#{name.replace(' ', '-')})")
    return text + (f"\nAlso {'; '.join(', '.join(names) + place for place, names in also.items())}.\n" if also else "")


def parameters(command: Callable[..., Any]) -> list[Parameter]:
    """Every parameter of a command, in the order of the help."""
    hints = get_type_hints(command, include_extras=True)
    declared = inspect.signature(command).parameters.values()
    return [_parameter(each, hints[each.name]) for each in declared if hints[each.name] is not typer.Context]


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    kind, info = get_args(hint)
    if isinstance(info, ArgumentInfo):
        names: tuple[str, ...] = (parameter.name.upper(),)
    else:
        # Of an annotation typer takes the first name for a default.
        declared = tuple(each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str))
        names = declared or ("--" + parameter.name.replace("_", "-"),)
    is_argument = isinstance(info, ArgumentInfo)
    return Parameter(names, is_argument, _value(kind, info), _default(parameter.default), info.help or "")


def _row(parameter: Parameter) -> str:
    default = f"`{parameter.default}`" if parameter.default not in ("", "required") else parameter.default
    value = ", ".join(filter(None, (parameter.value, default and f"default {default}".replace("default req", "req"))))
    cells = (f"{_names(parameter)} {value}".rstrip(), parameter.help)
    return f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


def _names(parameter: Parameter) -> str:
    return ", ".join(f"`{name}`" for name in parameter.names)


def _value(kind: Any, info: ParameterInfo) -> str:
    kinds = [kind, *get_args(kind)]
    types = [each for each in kinds if isinstance(each, type)]
    choices = [each.value for member in types if issubclass(member, enum.Enum) for each in member]
    choices += [value for each in kinds if get_origin(each) is Literal for value in get_args(each)]
    if bool in types:
        return ""
    if choices:
        return " or ".join(f"`{each}`" for each in choices)
    text = info.metavar or ("FILE" if Path in types else "number" if {int, float} & {*types} else "TEXT")
    if info.min is None:
        return text
    return f"{text}, {info.min:g} or more" if info.max is None else f"{text}, {info.min:g} to {info.max:g}"


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "" if value is None or value is False else str(getattr(value, "value", value))


def page() -> str:
    """Return the whole page."""
    every = (*commands(main.program(), "v3bridge"), ("nexar-sandbox", sandbox_command.sandbox))
    uses = Counter(parameter for _, command in every for parameter in parameters(command))
    shared = [parameter for parameter, count in uses.items() if count >= SHARED_BY]
    known = dict.fromkeys(shared, "")
    head = HEAD + TABLE + "".join(map(_row, shared))
    return head + "".join(_section(name, command, known) for name, command in every)
