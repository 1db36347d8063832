"""A service manager as systemd is one for a socket unit: it holds the listening sockets, starts the program with them,
and receives its notifications."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.commands import environment

SECONDS = 60.0  # that a program may take to report something before its test fails
# Between fork and exec the manager puts the sockets where the protocol has them. A program does it here, as asyncio has
# no hook for it; it has the process id that LISTEN_PID names, because exec keeps it.
LAUNCH = """
import fcntl, os, sys
sockets = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 100) for each in sys.argv[1].split(",")]
for number, each in enumerate(sockets, 3):
    os.dup2(each, number)
    os.close(each)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


class Program:
    """A running program, and the notifications that it sent, oldest first."""

    def __init__(
        self, process: asyncio.subprocess.Process, log: Path, notifications: asyncio.DatagramTransport
    ) -> None:
        self.process = process
        self.notified: list[str] = []
        self._log = log
        self._notifications = notifications

    async def until(self, assignment: str) -> None:
        """Wait for a notification with this line. Fails if the program ends before."""
        async with asyncio.timeout(SECONDS):
            while not any(assignment in message.splitlines() for message in self.notified):
                assert self.process.returncode is None, self.errors
                await asyncio.sleep(0.01)

    async def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            code = await self.process.wait()
        self._notifications.close()
        return code

    def end(self) -> None:
        """Kill the program if it still runs."""
        self._notifications.close()
        if self.process.returncode is None:
            self.process.kill()

    @property
    def errors(self) -> str:
        """The standard error so far."""
        return self._log.read_text()


class ServiceManager:
    """Starts programs with its `sockets`. State is kept in the folder."""

    def __init__(self, sockets: dict[str, socket.socket], folder: Path) -> None:
        self.sockets = sockets
        self.programs: list[Program] = []
        self._folder = folder

    async def start(self, *arguments: str, **variables: str) -> Program:
        """Start `python ARGUMENTS` and return once it is ready."""
        started = await self.launch(*arguments, **variables)
        await started.until("READY=1")
        return started

    async def launch(self, *arguments: str, **variables: str) -> Program:
        """Start `python ARGUMENTS`."""
        number = len(self.programs)
        address, log = self._folder / f"notify-{number}", self._folder / f"log-{number}"
        passed = [each.fileno() for each in self.sockets.values()]
        names = {"LISTEN_FDNAMES": ":".join(self.sockets), "NOTIFY_SOCKET": str(address)}
        receiver = _Receiver()
        notifications, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: receiver, local_addr=str(address), family=socket.AF_UNIX
        )
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", LAUNCH, ",".join(map(str, passed)), *arguments),
                env=environment(self._folder, **names, **variables),
                cwd=self._folder,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                pass_fds=passed,
            )
        program = Program(process, log, notifications)
        receiver.messages = program.notified
        self.programs.append(program)
        return program


class _Receiver(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.messages.append(data.decode())


@asynccontextmanager
async def managing(folder: Path, *names: str) -> AsyncIterator[ServiceManager]:
    """A manager with a listening socket for each name; ends its programs with the block."""
    sockets = {name: socket.create_server(("127.0.0.1", 0), backlog=4096) for name in names}
    manager = ServiceManager(sockets, folder)
    try:
        yield manager
    finally:
        for program in manager.programs:
            program.end()
            await program.process.wait()
        for each in sockets.values():
            each.close()
