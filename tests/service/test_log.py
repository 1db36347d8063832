"""Log lines: their fields, the texts that never appear in them, and the queue that they wait in."""

import asyncio
import contextlib
import gc
import io
import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from support import log_lines

from proxy import errors, log
from proxy.metrics import Metrics

KEY = "s3cret-apikey"


@pytest.fixture
def configure_log() -> Iterator[Callable[..., Any]]:
    """`configure_log(level, format, stream)` gives the stream; everything is put back afterwards."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(log_lines.collected(*(arguments or ("info",))))


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise ValueError(f"cannot read {KEY}")


def test_exception_is_logged_as_type_and_places_without_its_message(configure_log: Any) -> None:
    stream = configure_log()
    try:
        fail()
    except ValueError as error:
        structlog.get_logger().error("failed inside", exc_info=error)
    (line,) = lines(stream)
    assert line["error"] == "ValueError"
    assert str(line["at"]).startswith("test_log.py:")
    assert str(line["at"]).count("test_log.py:") == 2
    assert KEY not in stream.getvalue()


def test_own_errors_keep_their_message_and_cause(configure_log: Any) -> None:
    stream = configure_log("info", "console")
    try:
        try:
            fail()
        except ValueError as cause:
            raise errors.UpstreamUnreadable("the service sent nonsense") from cause
    except errors.UpstreamUnreadable as error:
        structlog.get_logger().warning("trouble", exc_info=error)
    assert "UpstreamUnreadable: the service sent nonsense from ValueError" in stream.getvalue()
    assert KEY not in stream.getvalue()
    assert "Traceback" not in stream.getvalue()


@pytest.mark.parametrize(
    "name, message, arguments, words",
    [
        ("aiohttp.server", "Error handling request from %s", (KEY,), "Error handling request from"),
        ("aiohttp.access", f'127.0.0.1 [now] "GET /v3?apikey={KEY} HTTP/1.1"', (), "a message without"),
        ("aiohttp.web", f"Web-handler should return a response, got {{'k': '{KEY}'}}", (), "Web-handler should"),
        ("asyncio", f"Exception in callback call('{KEY}')\nhandle: <Handle {KEY}>", (), "Exception in callback"),
        ("asyncio", "Task exception was never retrieved\nfuture: <Task>", (), "Task exception was never retrieved"),
        ("redis", f"Failed to reach {KEY} again", (), "Failed to reach"),
        ("redis", "Push response: " + KEY, (), "Push response"),
        ("other", f"for {KEY.replace('-', '_')} and", (), "for"),
        ("other", f"GET /v3/parts?apikey={KEY}", (), "GET"),
        ("other", f"?apikey={KEY}", (), "a message without fixed words"),
        ("other", {"apikey": KEY}, (), "a message without fixed words"),
    ],
)
def test_messages_of_libraries_are_reduced_to_their_fixed_part(
    configure_log: Any, name: str, message: Any, arguments: Any, words: str
) -> None:
    stream = configure_log()
    logging.getLogger(name).error(message, *arguments)
    (line,) = lines(stream)
    assert str(line["event"]).startswith(words)
    assert (line["logger"], line["level"]) == (name, "error")
    assert KEY not in stream.getvalue()


def test_message_of_the_event_loop_is_reduced(configure_log: Any) -> None:
    stream = configure_log()
    loop = asyncio.new_event_loop()
    try:
        loop.call_exception_handler({"message": "Unhandled", "exception": ValueError(KEY), "context": {"apikey": KEY}})
    finally:
        loop.close()
    (line,) = lines(stream)
    assert (line["event"], line["error"]) == ("Unhandled", "ValueError")
    assert KEY not in stream.getvalue()


def test_libraries_log_nothing_below_info_even_at_debug(configure_log: Any) -> None:
    stream = configure_log("debug")
    logging.getLogger("asyncio").debug("Using selector: %s", "EpollSelector")
    assert stream.getvalue() == ""


@pytest.fixture
def uncaught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    log.log_uncaught_exceptions()


def test_exception_that_ends_a_thread_is_logged_without_traceback(
    configure_log: Any, uncaught: None, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = configure_log()
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    (line,) = lines(stream)
    assert (line["event"], line["error"]) == ("thread failed", "ValueError")
    assert (capfd.readouterr().err, KEY in stream.getvalue()) == ("", False)


def test_exception_in_a_destructor_is_logged_without_traceback(
    configure_log: Any, uncaught: None, capfd: pytest.CaptureFixture[str]
) -> None:
    class Falling:
        def __del__(self) -> None:
            fail()

    gc.collect()  # what other tests left behind
    stream = configure_log()
    Falling()
    gc.collect()
    (line,) = lines(stream)
    assert (line["event"], line["error"]) == ("unraisable exception ignored", "ValueError")
    assert (capfd.readouterr().err, KEY in stream.getvalue()) == ("", False)


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


def numbered(first: int, last: int) -> list[str]:
    return [f"line {n} {'x' * 90}" for n in range(first, last)]


def test_all_lines_are_written_at_the_end_in_their_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        file.write("printed before\n")
        with log.Output(file).queued() as stream:
            for line in numbered(0, 5_000):
                stream.write(line + "\n")
        assert (tmp_path / "log").read_text().splitlines() == ["printed before", *numbered(0, 5_000)]


@pytest.mark.parametrize("blocking", [True, False])
def test_unread_pipe_blocks_nothing_and_lost_lines_are_counted(
    pipe: Pipe, configure_log: Any, monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    metrics = Metrics()
    monkeypatch.setattr(log, "LINES_MAX", 3_000)
    monkeypatch.setattr(log.Output, "dropped", 0)
    os.set_blocking(pipe.stream.fileno(), blocking)
    with log.Output(pipe.stream).queued() as stream:
        for line in numbered(0, 10_000):  # a pipe takes about 700 of them
            stream.write(line + "\n")
        metrics.text()
        dropped = int(metrics.registry.get_sample_value("v3bridge_log_lines_dropped_total") or 0)
        text = ""
        while text.count("\n") < 10_000 - dropped:
            text += pipe.read_until("\n")
        configure_log("info", "console", stream)
        structlog.get_logger().info("service stopping")
        assert "service stopping" in pipe.read_until("service stopping")
    received = text.splitlines()
    kept = set(received)
    assert received == [line for line in numbered(0, 10_000) if line in kept]
    assert 0 < dropped <= 7_000
