"""Commands whose options are the fields of a dataclass: name, type, default and help text are declared once."""

from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def command(
    options: type[T], run: Callable[[T], None], names: Collection[str] | None = None, **required: Any
) -> Callable[..., None]:
    """Make a typer command of `run`, whose parameters are the fields of the dataclass `options`, or those in `names`.

    A field without a default is required. `required` are annotations of further fields that this command requires.
    """

    def invoke(**given: Any) -> None:
        run(options(**given))

    hints = get_type_hints(options, include_extras=True) | required
    declared: tuple[Any, ...] = fields(options)  # type: ignore[arg-type]
    defaults = {field.name: Parameter.empty if field.default is MISSING else field.default for field in declared}
    defaults |= dict.fromkeys(required, Parameter.empty)
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hints[name])
        for name in (names or defaults)
    ]
    # typer reads a command's signature, type hints and docstring.
    invoke.__doc__ = run.__doc__
    invoke.__annotations__ = {each.name: each.annotation for each in parameters}
    invoke.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return invoke
