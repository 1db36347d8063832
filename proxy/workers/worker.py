"""Worker process, started by supervisor.py only.

Serves until SIGTERM, or STOP or end of file on standard input, and finishes its requests. Standard output carries
reports to the supervisor; everything else that is printed goes to standard error.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress

import structlog

from proxy import config, errors
from proxy.kit import event_loop
from proxy.telemetry import log, log_queue, multiprocess
from proxy.workers import messages, single_process

HANGUP = "the supervisor reloads the configuration"


def main() -> None:
    """Run the worker. Exit code 0 after a clean stop, 2 if it could not start."""
    report = os.dup(sys.stdout.fileno())
    # Whatever prints to standard output must not mix with the reports.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError), log_queue.queued(sys.stderr) as stream:
        message = messages.read_start(sys.stdin.fileno())

        def configure_log(settings: config.LogSettings) -> None:
            log.configure(settings.level, settings.format, stream)

        configure_log(message.settings.log)
        multiprocess.count_as(str(message.slot.number))
        log.log_uncaught_exceptions()
        event_loop.run(_serve(message, report, configure_log))


async def _serve(
    message: messages.StartMessage, stdout: int, configure_log: Callable[[config.LogSettings], None]
) -> None:
    stop = event_loop.stop_on_signal()
    event_loop.on_hangup(stop, lambda: log.log_ignored_signal("SIGHUP", HANGUP))
    pipe, supervisor = await asyncio.get_running_loop().connect_read_pipe(lambda: _Supervisor(stop), sys.stdin)
    try:
        async with single_process.running(message.settings, message.slot, sockets=message.sockets) as service:
            if message.last_reload is not None:
                await service.report(message.last_reload, counts=False)
            orders = _Orders(service, stdout, configure_log)
            _send(stdout, messages.StartReport(*service.urls))
            following = asyncio.create_task(orders.follow(supervisor.messages), name="orders of the supervisor")
            await stop.wait()
            following.cancel()
            await asyncio.wait((following,))
    except errors.StartError as error:
        _send(stdout, messages.StartReport(mistake=error.message))
        sys.exit(2)
    finally:
        pipe.close()
        os.close(stdout)
        if supervisor.broken:  # it was killed and could not remove its folder
            shutil.rmtree(message.slot.folder, ignore_errors=True)


def _send(stdout: int, report: messages.Report) -> None:
    """Write a report. A supervisor that has died is noticed on standard input."""
    with suppress(BrokenPipeError):
        os.write(stdout, messages.write_report(report))


class _Orders:
    """Follows the messages of the supervisor, one after the other, and acknowledges each."""

    def __init__(
        self,
        service: single_process.ProcessService,
        stdout: int,
        configure_log: Callable[[config.LogSettings], None],
    ) -> None:
        self._service = service
        self._stdout = stdout
        self._configure_log = configure_log
        self._log_settings: config.LogSettings | None = None

    async def follow(self, received: "asyncio.Queue[messages.Message]") -> None:
        while True:
            message = await received.get()
            if isinstance(message, messages.CallMessage):
                mistake = await self._call(message)
                _send(self._stdout, messages.Acknowledgement(message.number, mistake))

    async def _call(self, message: messages.CallMessage) -> str:
        """Call a method of the service; return why that is not possible, else nothing."""
        try:
            if message.method == "commit" and self._log_settings is not None:
                self._configure_log(self._log_settings)
            await getattr(self._service, message.method)(*message.arguments)
            if message.method == "prepare":
                self._log_settings = message.arguments[0].log
        except errors.StartError as error:
            return error.message
        except Exception as error:
            structlog.get_logger().error("internal error caught", exc_info=error)
            return f"internal error: {type(error).__name__}; see the log"
        return ""


class _Supervisor(asyncio.Protocol):
    """Standard input: `messages` of the supervisor. Stops the worker on StopMessage or end of file; `broken` after an
    end of file without that."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._stopped = False
        self._reader = messages.MessageReader()
        self.messages: asyncio.Queue[messages.Message] = asyncio.Queue()
        self.broken = False

    def data_received(self, data: bytes) -> None:
        for message in self._reader.read(data):
            if isinstance(message, messages.StopMessage):
                self._stopped = True
                self._stop.set()
            self.messages.put_nowait(message)

    def eof_received(self) -> None:
        self.broken = not self._stopped
        self._stop.set()
