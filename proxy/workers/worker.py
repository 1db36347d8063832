"""One worker, as a program of its own: `python -m proxy.workers.worker`, started by supervisor.py and nobody else.

Serves until it gets SIGTERM, or its standard input says stop or ends, and finishes what is under way. Its standard
output is for its one report; what else would be printed goes to standard error.
"""

import asyncio
import os
import shutil
import sys
from contextlib import suppress

from proxy import errors
from proxy.kit import looping
from proxy.telemetry import log
from proxy.workers import alone, orders


def main() -> None:
    """Exit code 0 after a clean end, 2 where it could not start."""
    report = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError):
        looping.run(_serve(orders.read_order(sys.stdin.fileno()), report))


async def _serve(order: orders.Order, report: int) -> None:
    log.configure(order.settings.log.level, order.settings.log.format, sys.stderr)
    log.catch_what_nobody_catches()
    stop = looping.on_signal()
    looping.on_hangup(stop, lambda: log.signal_ignored("SIGHUP"))
    pipe, lifeline = await asyncio.get_running_loop().connect_read_pipe(lambda: _Lifeline(stop), sys.stdin)
    try:
        async with alone.running(order.settings, order.place) as url:
            _say(report, orders.Report(url=url))
            await stop.wait()
    except errors.StartError as error:
        _say(report, orders.Report(mistake=error.message))
        sys.exit(2)
    finally:
        pipe.close()
        if lifeline.broken:  # the supervisor was killed, and left this to whoever outlives it
            shutil.rmtree(order.place.folder, ignore_errors=True)


def _say(report: int, said: orders.Report) -> None:
    """Once. A supervisor that is gone need not hear it: the lifeline tells as much."""
    with suppress(BrokenPipeError), os.fdopen(report, "wb") as stream:
        stream.write(orders.write_report(said))


class _Lifeline(asyncio.Protocol):
    """Standard input: says when to stop, and is `broken` where it ended before it did."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._told = False
        self.broken = False

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - there is but one word
        self._told = True
        self._stop.set()

    def eof_received(self) -> None:
        self.broken = not self._told
        self._stop.set()


if __name__ == "__main__":
    main()
