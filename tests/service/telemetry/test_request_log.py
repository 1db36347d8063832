"""Request log line: its text is that of structlog's pipeline, in both formats and at terminals."""

import io
import re
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from support import log_lines

from proxy.telemetry import log, request_ids, request_log
from proxy.telemetry.request_log import RequestFields

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
PRIVATE: tuple[Literal["Cs", "Co"], ...] = (
    "Cs",
    "Co",
)  # surrogates and private-use characters are no text of a configuration
WORDS = st.text(st.characters(exclude_categories=PRIVATE), max_size=12)
FIELDS = st.builds(
    RequestFields,
    method=st.sampled_from(["GET", "HEAD", "other"]),
    route=WORDS,
    status=st.integers(100, 599),
    address=WORDS,
    application=st.none() | WORDS,
    key=st.none() | WORDS,
    parts=st.none() | st.integers(0, 2**40),
    cache=st.none() | st.sampled_from(["hit", "shared", "miss", "stale"]),
    error=st.none() | WORDS,
    is_check=st.booleans(),
)
IDS = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def restored_log() -> Iterator[None]:
    with log_lines.collected():
        yield


def values(fields: RequestFields, seconds: float) -> dict[str, Any]:
    """The fields of the line, as an ordinary event has them."""
    given = fields._asdict()
    is_check = given.pop("is_check")
    assert isinstance(is_check, bool)
    ordered = ("method", "route", "status", "ms", "application", "key", "parts", "cache", "error", "address")
    given["ms"] = round(seconds * 1000, 1)
    return {name: given[name] for name in ordered if given[name] is not None}


def written_twice(stream: io.StringIO, format_: str, fields: RequestFields, seconds: float, id_: str) -> list[str]:
    """The line of the request log, and that of an ordinary event with the same fields."""
    log.configure("debug", format_, stream)
    lines = request_log.RequestLog()
    lines.write(fields, seconds, id_)
    lines.write(fields, seconds, id_)  # from the template
    token = request_ids.REQUEST_ID.set(id_)
    logger = structlog.get_logger()
    (logger.debug if fields.is_check else logger.info)("request completed", **values(fields, seconds))
    request_ids.REQUEST_ID.reset(token)
    text = TIME.sub("TIME", stream.getvalue())
    return [text[: len(text) // 3], text[len(text) // 3 : len(text) // 3 * 2], text[len(text) // 3 * 2 :]]


@given(FIELDS, st.floats(0, 1e9), IDS, st.sampled_from(["console", "json"]))
def test_line_equals_that_of_structlog(fields: Any, seconds: float, id_: str, format_: str) -> None:
    with log_lines.collected():
        first, again, usual = written_twice(io.StringIO(), format_, fields, seconds, id_)
    assert first == usual
    assert again == usual


def test_line_at_a_terminal_has_colors(restored_log: None) -> None:
    stream = Terminal()
    log.configure("info", "console", stream)
    request_log.RequestLog().write(RequestFields("GET", "/v3/parts/match", 200, "127.0.0.1"), 0.25, "the-id")
    assert "\x1b[" in stream.getvalue()
    assert "250.0" in stream.getvalue()
    assert "the-id" in stream.getvalue()


def test_line_at_a_terminal_has_its_own_id(restored_log: None) -> None:
    """A hit that is answered unparsed is logged outside of any request, or where a task of another one goes on."""
    stream = Terminal()
    log.configure("info", "console", stream)
    token = request_ids.REQUEST_ID.set("of-another")
    request_log.RequestLog().write(RequestFields("GET", "/v3/parts/match", 200, "127.0.0.1"), 0.25, "the-id")
    request_ids.REQUEST_ID.reset(token)
    assert "the-id" in stream.getvalue()
    assert "of-another" not in stream.getvalue()


def test_many_combinations_of_fields_keep_a_bounded_number_of_templates(restored_log: None) -> None:
    stream = io.StringIO()
    log.configure("info", "console", stream)
    lines = request_log.RequestLog()
    for parts in range(2 * request_log.TEMPLATES_MAX):
        lines.write(RequestFields("GET", "/v3", 200, "127.0.0.1", parts=parts), 0.1, "id")
    # Private: memory shows nowhere else.
    assert len(lines._templates) <= request_log.TEMPLATES_MAX
    assert [f" parts={n} " in line for n, line in enumerate(stream.getvalue().splitlines())] == [True] * 2_000


@pytest.mark.parametrize(
    "level, enabled", [("debug", (True, True)), ("info", (True, False)), ("warning", (False, False))]
)
def test_operators_endpoints_are_logged_at_debug(restored_log: None, level: str, enabled: tuple[bool, bool]) -> None:
    log.configure(level, "console", io.StringIO())
    lines = request_log.RequestLog()
    assert (lines.is_enabled(is_check=False), lines.is_enabled(is_check=True)) == enabled
