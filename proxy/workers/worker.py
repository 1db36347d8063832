"""Worker process: `python -m proxy.workers.worker`, started by supervisor.py only.

Serves until SIGTERM, or STOP or end of file on standard input, and finishes its requests. Standard output carries the
start report; everything else that is printed goes to standard error.
"""

import asyncio
import os
import shutil
import sys
from contextlib import suppress

from proxy import errors
from proxy.kit import event_loop
from proxy.telemetry import log, log_writer
from proxy.workers import messages, single_process


def main() -> None:
    """Run the worker. Exit code 0 after a clean stop, 2 if it could not start."""
    report = os.dup(sys.stdout.fileno())
    # Whatever prints to standard output must not mix with the report.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError), log_writer.buffered(sys.stderr) as stream:
        message = messages.read_start(sys.stdin.fileno())
        log.configure(message.settings.log.level, message.settings.log.format, stream)
        log.log_uncaught_exceptions()
        event_loop.run(_serve(message, report))


async def _serve(message: messages.StartMessage, report: int) -> None:
    stop = event_loop.stop_on_signal()
    event_loop.ignore_hangup(stop, lambda: log.log_ignored_signal("SIGHUP"))
    pipe, lifeline = await asyncio.get_running_loop().connect_read_pipe(lambda: _Lifeline(stop), sys.stdin)
    try:
        async with single_process.running(message.settings, message.slot, sockets=message.sockets) as urls:
            _send(report, messages.StartReport(urls.public, urls.admin))
            await stop.wait()
    except errors.StartError as error:
        _send(report, messages.StartReport(mistake=error.message))
        sys.exit(2)
    finally:
        pipe.close()
        if lifeline.broken:  # the supervisor was killed and could not remove its folder
            shutil.rmtree(message.slot.folder, ignore_errors=True)


def _send(stdout: int, report: messages.StartReport) -> None:
    """Write the report, once. A supervisor that has died is detected by the lifeline."""
    with suppress(BrokenPipeError), os.fdopen(stdout, "wb") as stream:
        stream.write(messages.write_report(report))


class _Lifeline(asyncio.Protocol):
    """Standard input: stops the worker on STOP or end of file; `broken` after an end of file without STOP."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._stopped = False
        self.broken = False

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - there is but one word
        self._stopped = True
        self._stop.set()

    def eof_received(self) -> None:
        self.broken = not self._stopped
        self._stop.set()


if __name__ == "__main__":
    main()
