"""Queued log: order and completeness of lines, streams that are slow, full or gone, and the end of the process."""

import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from support import log_lines

from proxy import log
from proxy.metrics import Metrics


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
        with log.Output(file).queued() as stream:
            for line in lines(0, 5_000):
                stream.write(line + "\n")
        assert (tmp_path / "log").read_text().splitlines() == ["printed before", *lines(0, 5_000)]


@pytest.mark.parametrize("blocking", [True, False])
def test_unread_pipe_blocks_nothing_and_lost_lines_are_counted(
    pipe: Pipe, restored_log: None, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    metrics = Metrics()
    monkeypatch.setattr(log, "LINES_MAX", 3_000)
    monkeypatch.setattr(log.Output, "dropped", 0)
    os.set_blocking(pipe.stream.fileno(), blocking)
    with log.Output(pipe.stream).queued() as stream:
        for line in lines(0, 10_000):  # a pipe takes about 700 of them
            stream.write(line + "\n")
        metrics.text()
        dropped = int(metrics.registry.get_sample_value("v3bridge_log_lines_dropped_total") or 0)
        text = ""
        while text.count("\n") < 10_000 - dropped:
            text += pipe.read_until("\n")
        log.configure("info", "console", stream)
        structlog.get_logger().info("service stopping")
        assert "service stopping" in pipe.read_until("service stopping")
    received = text.splitlines()
    kept = set(received)
    assert received == [line for line in lines(0, 10_000) if line in kept]
    assert 0 < dropped <= 7_000
