"""Messages between the supervisor and a worker."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy import config
from proxy.telemetry import merging
from proxy.workers import messages

SETTINGS = config.Config(
    applications={
        "demo": config.ApplicationSettings(
            apikeys=(config.ApiKeySettings(config.digest("a-key")),),
            client_id=config.ClientId("an-id"),
            client_secret=config.Secret("a-secret"),
        )
    },
    upstream=config.UpstreamSettings("http://127.0.0.1:1/graphql", "http://127.0.0.1:1/token"),
)
MESSAGE = messages.StartMessage(SETTINGS, merging.WorkerSlot(Path("a-folder"), 2))


@pytest.fixture
def pipe_with() -> Iterator[Callable[[bytes], int]]:
    """`pipe_with(data)` is the end of a pipe into which that was written before it was closed."""
    opened: list[int] = []

    def send(data: bytes) -> int:
        reading, writing = os.pipe()
        opened.append(reading)
        os.write(writing, data)
        os.close(writing)
        return reading

    yield send
    for pipe in opened:
        os.close(pipe)


def test_start_message_keeps_secrets_and_digests(pipe_with: Callable[[bytes], int]) -> None:
    message = messages.read_start(pipe_with(messages.write(MESSAGE)))
    assert message == MESSAGE
    secret = message.settings.applications["demo"].client_secret
    assert secret is not None
    assert secret.reveal() == "a-secret"


def test_bytes_after_the_start_message_stay_in_the_pipe(pipe_with: Callable[[bytes], int]) -> None:
    pipe = pipe_with(messages.write(MESSAGE) + messages.STOP)
    messages.read_start(pipe)
    assert os.read(pipe, 100) == messages.STOP


@pytest.mark.parametrize("length", [0, 5, 8, 100])
def test_truncated_start_message_is_end_of_file(pipe_with: Callable[[bytes], int], length: int) -> None:
    with pytest.raises(EOFError):
        messages.read_start(pipe_with(messages.write(MESSAGE)[:length]))


@pytest.mark.parametrize(
    "report", [messages.StartReport(url="http://127.0.0.1:1"), messages.StartReport(mistake="Ω: no")]
)
def test_start_report_is_one_line(report: Any) -> None:
    line = messages.write_report(report)
    assert line.count(b"\n") == 1
    assert messages.read_report(line) == report


@pytest.mark.parametrize("line", [b"", b'{"url": "ht'])
def test_incomplete_start_report_is_none(line: bytes) -> None:
    assert messages.read_report(line) is None


RESULT = config.ReloadResult("reloaded", 1.0, ("cache.seconds",), ("listen.port",))
ORDERS: list[messages.Message] = [
    messages.CallMessage(1, "prepare", (SETTINGS,)),
    messages.CallMessage(2, "commit"),
    messages.CallMessage(3, "report", (RESULT, True)),
    messages.StopMessage(),
]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1_000, 1_000_000])
def test_messages_are_read_however_they_are_split(size: int) -> None:
    sent = b"".join(map(messages.write, ORDERS))
    reader = messages.MessageReader()
    received = [each for start in range(0, len(sent), size) for each in reader.read(sent[start : start + size])]
    assert received == ORDERS


def test_acknowledgement_is_one_line() -> None:
    report = messages.Acknowledgement(7, "no: Ω\nline")
    line = messages.write_report(report)
    assert line.count(b"\n") == 1
    assert messages.read_report(line) == report


@pytest.mark.parametrize("kind", [messages.StartReport, messages.Acknowledgement])
def test_report_of_very_many_mistakes_names_the_first(kind: Any) -> None:
    line = "config.yaml:1:1: \x00: is not known"  # JSON takes 6 bytes for the null character
    mistake = "\n".join([line] * 100_000)
    fields = {"number": 1} if kind is messages.Acknowledgement else {}
    data = messages.write_report(kind(mistake=mistake, **fields))
    assert len(data) < messages.REPORT_MAX
    report = messages.read_report(data)
    assert isinstance(report, kind)
    *lines, last = report.mistake.splitlines()
    assert set(lines) == {line}
    assert last == f"… and more, {len(mistake):,} characters in all"


@pytest.mark.parametrize("character", ["x", "\x00", "😀"])
def test_report_is_bounded_without_line_breaks(character: str) -> None:
    data = messages.write_report(messages.Acknowledgement(1, character * 1_000_000))
    assert len(data) < messages.REPORT_MAX
    report = messages.read_report(data)
    assert isinstance(report, messages.Acknowledgement)
    assert report.mistake.startswith(character * messages.MISTAKE_MAX + "\n")
