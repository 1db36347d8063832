"""docs/tutorial/migrate.md works as written: its files are saved, its commands run, its output appears."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Block, Page

ROOT = Path(__file__).parents[3]
PROGRAMS = {
    "v3bridge": f"{sys.executable} -m proxy",
    "nexar-sandbox": f"{sys.executable} -m nexar_sandbox",
    "python3 client.py": f"{sys.executable} client.py",
}
STARTED = {"--port": "client_secret", "serve": "curl -g"}  # by the first argument, what is printed when it is ready


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class _Reader:
    """Somebody who follows the page in a folder of their own, with ports that are free here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {port: str(_free_port()) for port in ("8080", "8081")}
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._environ = os.environ | {"XDG_STATE_HOME": str(folder), "PYTHONPATH": str(ROOT)}
        shutil.copytree(ROOT / "examples", folder / "examples")
        self.output = ""

    def follow(self, block: Block) -> None:
        """Do what the block asks for."""
        text = re.sub("|".join(self._ports), lambda match: self._ports[match[0]], block.text)
        for name, program in PROGRAMS.items():
            text = re.sub(rf"^{name}\b", program, text, flags=re.MULTILINE)
        if block.word in ("client.py", "migrate.yaml"):
            (self._folder / block.word).write_text(text, encoding="utf-8")
        elif block.word == "background":
            self._start(text)
        elif block.word == "output":
            assert block.text in self.output
        elif block.language == "sh" and block.word != "install":
            self._run(text)

    def _start(self, text: str) -> None:
        """Start a service that goes on running; the one that ran before is stopped first."""
        command = text.split()[3]
        self._stop(command)
        port = ["--port", self._ports["8080"]] if command == "serve" else []
        process = subprocess.Popen(
            [*text.split(), *port],
            cwd=self._folder,
            env=self._environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._running[command] = process
        assert process.stdout is not None
        assert any(STARTED[command] in line for line in process.stdout), text

    def _run(self, text: str) -> None:
        text = re.sub(r"^sleep \d+\n", "", text)
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(
                ["sh", "-ec", text], cwd=self._folder, env=self._environ, text=True, capture_output=True, check=False
            )
            self.output = done.stdout
            # A shadow's report has its first request some seconds later, on a busy machine after more of them.
            waits = "--shadow" in text and "/parts/match" not in self.output and time.monotonic() < deadline
            if not waits:
                break
            time.sleep(0.5)
        assert done.returncode in (0, 1), (text, done.stdout, done.stderr)

    def _stop(self, command: str) -> None:
        if command in self._running:
            process = self._running.pop(command)
            process.terminate()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()

    def stop(self) -> None:
        """Stop all that runs."""
        for command in list(self._running):
            self._stop(command)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[_Reader]:
    following = _Reader(tmp_path)
    yield following
    following.stop()


def test_tutorial_works_as_written(pages: dict[str, Page], reader: _Reader, tmp_path: Path) -> None:
    page = pages["docs/tutorial/migrate.md"]
    for block in page.blocks():
        reader.follow(block)
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
