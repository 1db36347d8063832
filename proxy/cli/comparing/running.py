"""Running `compare` and `record` so that their exit code never says more than they know."""

from collections.abc import Coroutine
from typing import Any, TypeVar

import typer

from proxy.compare import verdict
from proxy.kit import event_loop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Cut off by a second signal, it has compared nothing: 1 would say that there are differences."""
    try:
        return event_loop.run(main)
    except SystemExit:
        raise typer.Exit(verdict.NOT_COMPARED) from None
