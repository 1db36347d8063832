"""Commands whose options are the fields of a dataclass: name, type, default and help text are declared once. Reads the
values of options that several commands have."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from proxy import config
from proxy.config import loader, secret
from proxy.kit import shipped

T = TypeVar("T")

ConfigFile = Annotated[Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")]
AdminPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, envvar="V3BRIDGE_ADMIN_PORT", help="Replaces admin.port; also V3BRIDGE_ADMIN_PORT."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def configured(file: Path | None) -> config.Config:
    """Load a configuration, the shipped one without a file, for what needs no credentials. Raises ConfigError."""
    return loader.load(file or shipped.path("config.yaml"), os.environ, upstream=False)


def command(options: type[T], run: Callable[[T], None]) -> Callable[..., None]:
    """Make a typer command of `run`, whose parameters are the fields of the dataclass `options`. One without a default
    is required."""

    def invoke(**given: Any) -> None:
        run(options(**given))

    # typer reads a command's signature, type hints and docstring.
    invoke.__doc__ = run.__doc__
    invoke.__annotations__ = get_type_hints(options, include_extras=True)
    invoke.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
    return invoke


def read_key(text: str | None, option: str) -> config.Secret | None:
    """Read the API key from `env:NAME` or `file:PATH`. Raises BadParameter, whose message does not contain the key."""
    if text is None:
        return None
    # Other users of a machine can list the arguments of a process.
    if not text.startswith(("env:", "file:")):
        raise typer.BadParameter(
            "a key on a command line is seen by everybody on this machine: env:NAME or file:PATH", param_hint=option
        )
    try:
        return config.Secret(secret.resolve(text, Path(), os.environ))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
