"""Reports of a result: on the terminal, and into the files that were asked for."""

import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from proxy import errors
from proxy.cli import shown
from proxy.cli.comparing import choice
from proxy.compare import hiding
from proxy.compare.reports import as_json, html, junit, markdown, terminal
from proxy.compare.result import Result


def reports(result: Result, chosen: choice.Choice) -> None:
    """All of them. Raises ConfigError for a file that cannot be written, when the others are.

    Where one of them has standard output for itself, the printed one goes to standard error.
    """
    aside = chosen.to_output > 0
    screen = Console(stderr=aside)
    terminal.render(result, screen if screen.is_terminal else Console(stderr=aside, width=shown.FILE_WIDTH))
    wanted: tuple[tuple[Path | None, Callable[[Result], str]], ...] = (
        (chosen.html, html.render),
        (chosen.json, as_json.render),
        (chosen.markdown, markdown.render),
        (chosen.junit, junit.render),
        (chosen.save_hidden, hiding.render),
    )
    failed = [_write(path, render(result)) for path, render in wanted if path is not None]
    for reason in failed:
        if reason is not None:
            raise errors.ConfigError(reason)


def _write(path: Path, text: str) -> str | None:
    """Why it could not be written, None where it was."""
    try:
        if path == choice.STANDARD_OUTPUT:
            sys.stdout.write(text)
            return None
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"the report {path} cannot be written: {error.strerror}"
    return None
