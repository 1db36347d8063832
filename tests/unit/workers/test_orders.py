"""What passes between supervisor and worker arrives as it was sent, and not a byte more is read."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy import config
from proxy.telemetry import merging
from proxy.workers import orders

SETTINGS = config.Config(
    applications={
        "demo": config.Application(
            apikeys=(config.digest("a-key"),),
            client_id=config.ClientId("an-id"),
            client_secret=config.Secret("a-secret"),
        )
    },
    upstream=config.Upstream("http://127.0.0.1:1/graphql", "http://127.0.0.1:1/token"),
)
ORDER = orders.Order(SETTINGS, merging.Place(Path("a-folder"), 2))


@pytest.fixture
def sent() -> Iterator[Callable[[bytes], int]]:
    """`sent(data)` is the end of a pipe into which that was written before it was closed."""
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


def test_an_order_arrives_with_its_secrets_and_digests(sent: Callable[[bytes], int]) -> None:
    order = orders.read_order(sent(orders.write_order(ORDER)))
    assert order == ORDER
    assert order.settings.applications["demo"].client_secret.reveal() == "a-secret"


def test_the_word_after_the_order_is_left_in_the_pipe(sent: Callable[[bytes], int]) -> None:
    pipe = sent(orders.write_order(ORDER) + orders.STOP)
    orders.read_order(pipe)
    assert os.read(pipe, 100) == orders.STOP


@pytest.mark.parametrize("length", [0, 5, 8, 100])
def test_an_order_that_is_cut_is_the_supervisors_end(sent: Callable[[bytes], int], length: int) -> None:
    with pytest.raises(EOFError):
        orders.read_order(sent(orders.write_order(ORDER)[:length]))


@pytest.mark.parametrize("report", [orders.Report(url="http://127.0.0.1:1"), orders.Report(mistake="Ω: no")])
def test_a_report_is_one_line(report: Any) -> None:
    line = orders.write_report(report)
    assert line.count(b"\n") == 1
    assert orders.read_report(line) == report


@pytest.mark.parametrize("line", [b"", b'{"url": "ht'])
def test_a_worker_that_ended_first_has_reported_nothing(line: bytes) -> None:
    assert orders.read_report(line) is None
