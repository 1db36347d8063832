"""Queued log: order and completeness of lines, streams that are slow, full or gone, and the end of the process."""

import io
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
import structlog
from prometheus_client import CollectorRegistry
from support import log_lines

from proxy.telemetry import log, log_queue
from proxy.telemetry.metrics import Metrics


class Pipe:
    """A pipe, with its writing end as a stream."""

    def __init__(self) -> None:
        self._out, descriptor = os.pipe()
        self.stream = os.fdopen(descriptor, "w")

    def read_until(self, word: str) -> str:
        """Read until a word has arrived."""
        text = ""
        deadline = time.monotonic() + 20
        while word not in text and time.monotonic() < deadline:
            if select.select([self._out], (), (), 0.1)[0]:
                text += os.read(self._out, 65_536).decode()
        return text

    def close(self) -> None:
        os.close(self._out)
        self.stream.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.fixture
def restored_log() -> Iterator[None]:
    with log_lines.collected():
        yield


def lines(first: int, last: int) -> list[str]:
    return [f"line {n} {'x' * 90}" for n in range(first, last)]


def test_all_lines_are_written_at_the_end_in_their_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        file.write("printed before\n")
        with log_queue.queued(file) as stream:
            for line in lines(0, 5_000):
                stream.write(line + "\n")
        assert (tmp_path / "log").read_text().splitlines() == ["printed before", *lines(0, 5_000)]


def test_lines_of_several_threads_are_all_written(tmp_path: Path) -> None:
    def write(stream: TextIO, name: str) -> None:
        for number in range(500):
            stream.write(f"{name} {number}\n")

    with (tmp_path / "log").open("w") as file, log_queue.queued(file) as stream:
        threads = [threading.Thread(target=write, args=(stream, name)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted((tmp_path / "log").read_text().splitlines()) == sorted(
        f"{name} {n}" for name in "abc" for n in range(500)
    )


def test_line_of_a_destructor_while_a_line_is_queued_stops_nothing(tmp_path: Path) -> None:
    """Garbage collection may run anywhere, and destructors log, such as that of a failed task."""
    collected: list[str] = []

    def collect(*_: object) -> None:
        if len(collected) < 300:  # at each call and return of a function
            collected.append(f"of a destructor {len(collected)}")
            stream.write(collected[-1] + "\n")

    with (tmp_path / "log").open("w") as file, log_queue.queued(file) as stream:
        for number in range(5):
            sys.setprofile(collect)
            stream.write(f"usual {number}\n")
            sys.setprofile(None)
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line for line in lines if line.startswith("usual")] == [f"usual {number}" for number in range(5)]
    assert sorted(line for line in lines if line.startswith("of a")) == sorted(collected)
    assert collected


def test_line_is_written_soon_without_another_one(pipe: Pipe) -> None:
    with log_queue.queued(pipe.stream) as stream:
        stream.write("first\n")
        assert pipe.read_until("first\n") == "first\n"
        stream.write("second\n")
        assert pipe.read_until("second\n") == "second\n"


@pytest.mark.parametrize("blocking", [True, False])
def test_unread_pipe_blocks_nothing_and_lost_lines_are_counted(
    pipe: Pipe, restored_log: None, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    metrics = Metrics(CollectorRegistry())
    monkeypatch.setattr(log_queue, "LINES_MAX", 3_000)
    monkeypatch.setattr(log_queue.LogQueue, "dropped", 0)
    os.set_blocking(pipe.stream.fileno(), blocking)
    with log_queue.queued(pipe.stream) as stream:
        for line in lines(0, 10_000):  # a pipe takes about 700 of them
            stream.write(line + "\n")
        metrics.sample()
        dropped = int(metrics.log_lines_dropped[()])
        text = ""
        while text.count("\n") < 10_000 - dropped:
            text += pipe.read_until("\n")
        log.configure("info", "console", stream)
        structlog.get_logger().info("service stopping")
        assert "service stopping" in pipe.read_until("service stopping")
    received = text.splitlines()
    assert received == [line for line in lines(0, 10_000) if line in set(received)]
    assert 0 < dropped <= 7_000


def test_process_ends_with_an_unread_pipe(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_queue, "CLOSE_SECONDS", 0.05)
    with log_queue.queued(pipe.stream) as stream:
        for line in lines(0, 3_000):
            stream.write(line + "\n")
    assert pipe.read_until("line 2999 ").startswith("line 0 ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_full_disk_raises_nothing() -> None:
    with open("/dev/full", "w") as file, log_queue.queued(file) as stream:
        stream.write("a line\n")
        stream.write("another\n")


def test_writers_of_several_processes_share_a_pipe_without_mixing_lines(pipe: Pipe) -> None:
    with log_queue.queued(pipe.stream) as first, log_queue.queued(pipe.stream) as second:
        for name, stream in (("a", first), ("b", second)):
            for number in range(2_000):
                stream.write(f"{name} {number} {'x' * 80} end\n")
        stream.write("long " + "y" * 5_000 + "\n")
        text = ""
        while text.count("\n") < 4_001:
            text += pipe.read_until("\n")
    assert {(line[0], line[-3:]) for line in text.splitlines()} == {("a", "end"), ("b", "end"), ("l", "yyy")}


def test_stream_in_memory_is_not_buffered() -> None:
    memory = io.StringIO()
    with log_queue.queued(memory) as stream:
        stream.write("at once\n")
        assert memory.getvalue() == "at once\n"
