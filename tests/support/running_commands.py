"""Fixtures: a command with its output and exit code, in this process or as one of its own."""

import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.cli import main

ROOT = Path(__file__).parents[2]
PROCESS = ("-m", "proxy")  # `v3bridge` as a process of its own
UNWANTED = ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS", "PYTHONWARNINGS")
SECONDS = 60  # that a command may take before its test fails; usually it takes one or two
LIFETIME = 240  # seconds that a command may go on which a test starts: less than a test may take

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class RunningCommand:
    """A command that goes on until it is told to stop."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process = process
        self._errors = errors

    def until(self, word: str) -> list[str]:
        """Read the output up to the line that contains `word`."""
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            lines.append(line.rstrip())
            if word in line:
                return lines
        raise AssertionError(f"{word!r} was never printed; errors: {self.errors}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, signal: int) -> None:
        self._process.send_signal(signal)

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        return self._process.wait(SECONDS)

    def stop(self, signal: int) -> int:
        """Send a signal; the exit code."""
        self.tell(signal)
        return self.ended()

    @property
    def errors(self) -> str:
        """Return the standard error so far."""
        return self._errors.read_text(encoding="utf-8")


Start = Callable[..., RunningCommand]


def environment() -> dict[str, str]:
    """The test's own, without what would color or widen the output."""
    return {name: value for name, value in os.environ.items() if name not in UNWANTED} | {"NO_COLOR": "1"}


@pytest.fixture
def start_command(tmp_path: Path) -> Iterator[Start]:
    """Starts `v3bridge` with arguments (or another Python command line), and ends it with the test."""
    started: list[tuple[subprocess.Popen[str], threading.Timer]] = []

    def start(*arguments: str, python: tuple[str, ...] = PROCESS) -> RunningCommand:
        errors = tmp_path / f"errors-{len(started)}.txt"
        with errors.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, *python, *arguments],
                cwd=ROOT,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        timer = threading.Timer(LIFETIME, process.kill)
        timer.start()
        started.append((process, timer))
        return RunningCommand(process, errors)

    yield start
    for process, timer in started:
        timer.cancel()
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def run_command() -> Run:
    """Runs `v3bridge` to its end, in this process; as a process of its own, if `python` is its command line, and where
    the program begins anew as another (`serve`)."""

    def run(*arguments: str, python: tuple[str, ...] | None = None) -> "subprocess.CompletedProcess[str]":
        serves = arguments[:1] == ("serve",) and arguments[-1] not in ("-h", "--help")
        if python is None and not serves:
            return run_in_this_process(*arguments)
        return subprocess.run(
            [sys.executable, *(python or PROCESS), *arguments],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


def run_in_this_process(
    *arguments: str, folder: Path = ROOT, given: str = "", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run `v3bridge` to its end, for its output and exit code, at a fifth of the time of a process.

    `given` is the standard input; `variables` are added to the environment. A command that serves, or that must be
    interrupted, needs a process of its own.
    """
    entered, printed, errors = (io.TextIOWrapper(io.BytesIO(text), "utf-8") for text in (given.encode(), b"", b""))
    with pytest.MonkeyPatch.context() as patch:
        for name in UNWANTED:
            patch.delenv(name, raising=False)
        for name, value in {"NO_COLOR": "1", **variables}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["v3bridge", *arguments])
        patch.setattr(sys, "stdin", entered)
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
            pytest.raises(SystemExit) as ended,
        ):
            main.main()
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), _text(printed), _text(errors))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
