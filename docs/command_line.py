"""The reference of the command line, made of the program's own help: `python -m docs.command_line`.

Prints docs/reference/command-line.md; tests/docs holds the page to it.
"""

import enum
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo, ParameterInfo

from proxy.cli import main

HEAD = """# Command line

Every command with its arguments and options, as `v3bridge COMMAND --help` prints them. This page is generated from the
program. A test fails while it is stale; this renews it:

```sh
.venv/bin/python -m docs.command_line > docs/reference/command-line.md
```

Exit codes: 0 is success, 1 an unsuccessful result, 2 a mistake in options or configuration. `v3bridge compare` has
[codes of its own](comparison.md#exit-codes), and `v3bridge conform` [one](../how-to/conform.md#read-the-result).
"""
ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", "\n": " "})


def commands(app: typer.Typer, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command, with all words of its name, in the order of the help."""
    for each in app.registered_commands:
        assert each.callback is not None
        yield f"{name} {each.name or each.callback.__name__}", each.callback
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{name} {group.name}")


def section(name: str, command: Callable[..., Any]) -> str:
    """What a command does, and a table of its parameters."""
    hints = get_type_hints(command, include_extras=True)
    rows = [_row(each, hints[each.name]) for each in inspect.signature(command).parameters.values()]
    table = "| option | value | default | meaning |\n|---|---|---|---|\n" + "".join(rows)
    return f"\n## {name}\n\n{inspect.getdoc(command)}\n" + (f"\n{table}" if rows else "")


def _row(parameter: inspect.Parameter, hint: Any) -> str:
    kind, info = get_args(hint)
    # Of an annotation typer takes the first name for a default.
    declared = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    names = declared or ["--" + parameter.name.replace("_", "-")]
    shown = f"`{parameter.name.upper()}`" if isinstance(info, ArgumentInfo) else ", ".join(f"`{n}`" for n in names)
    cells = (shown, _value(kind, info), _default(parameter.default), info.help or "")
    return f"| {' | '.join(cell.translate(ESCAPED) for cell in cells)} |\n"


def _value(kind: Any, info: ParameterInfo) -> str:
    types = [each for each in (kind, *get_args(kind)) if isinstance(each, type)]
    choices = next((each for each in types if issubclass(each, enum.Enum)), None)
    if bool in types:
        return ""
    if choices is not None:
        return " or ".join(f"`{each.value}`" for each in choices)
    text = info.metavar or ("FILE" if Path in types else "number" if {int, float} & {*types} else "TEXT")
    if info.min is None:
        return text
    return f"{text}, {info.min:g} or more" if info.max is None else f"{text}, {info.min:g} to {info.max:g}"


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    return "" if value is None or value is False else f"`{getattr(value, 'value', value)}`"


def page() -> str:
    """The whole page."""
    return HEAD + "".join(section(name, command) for name, command in commands(main.app, "v3bridge"))


if __name__ == "__main__":
    print(page(), end="")
