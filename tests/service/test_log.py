"""Log lines: their fields, and the texts that never appear in them."""

import asyncio
import gc
import io
import json
import logging
import sys
import threading
from typing import Any

import pytest
import structlog

from proxy import errors, log

KEY = "s3cret-apikey"


@pytest.fixture
def configure_log() -> Any:
    """`configure_log(level, format)` gives the stream; everything is put back afterwards."""
    root = logging.getLogger()
    before = root.level

    def to(level: str = "info", format_: str = "json") -> io.StringIO:
        stream = io.StringIO()
        log.configure(level, format_, stream)
        return stream

    yield to
    structlog.reset_defaults()
    root.setLevel(before)
    root.removeHandler(log.BRIDGE)


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
    stream = configure_log(format_="console")
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
        (
            "aiohttp.web",
            f"Web-handler should return a response, got {{'k': '{KEY}'}}",
            (),
            "Web-handler should",
        ),
        (
            "asyncio",
            f"Exception in callback call('{KEY}')\nhandle: <Handle {KEY}>",
            (),
            "Exception in callback",
        ),
        (
            "asyncio",
            "Task exception was never retrieved\nfuture: <Task>",
            (),
            "Task exception was never retrieved",
        ),
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


def test_lines_have_the_id_of_the_current_request_only(configure_log: Any) -> None:
    stream = configure_log()
    log.REQUEST_ID.set("the-one")
    logging.getLogger("aiohttp.web").warning("one")
    structlog.get_logger().info("two")
    log.REQUEST_ID.set("")
    structlog.get_logger().info("three")
    assert [line.get("request") for line in lines(stream)] == ["the-one", "the-one", None]


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
