"""docs/explanation/faults.md matches the code: numbers, messages, metrics.

Retries: tests/together/test_faults.py.
"""

import asyncio
import random
import re
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import prometheus_client
import pytest

from proxy import config, errors
from proxy.kit import clock
from proxy.kit.aiohttp_internals import connector
from proxy.telemetry import metrics
from proxy.upstream import classify, http_post
from proxy.upstream.auth import identity, token_cache


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/explanation/faults.md"]


def test_every_timeout_is_documented_with_its_message(page: Any) -> None:
    rows = page.table("limit")
    named = [row[1].strip("`").removeprefix("timeouts.") for row in rows]
    assert named == list(config.TimeoutSettings.__struct_fields__)
    limits = {field.name: field.default for field in msgspec.structs.fields(config.TimeoutSettings)}
    timeout = aiohttp.ClientTimeout(
        total=limits["total_seconds"],
        sock_connect=limits["connect_seconds"],
        sock_read=limits["first_byte_seconds"],
    )
    head = connector.Attempt(0.0)
    head.content = cast(Any, SimpleNamespace(total_bytes=0))
    said = [
        http_post.exceeded_limit(aiohttp.ConnectionTimeoutError(), connector.Attempt(0.0), timeout),
        http_post.exceeded_limit(aiohttp.SocketTimeoutError(), connector.Attempt(0.0), timeout),
        http_post.exceeded_limit(aiohttp.SocketTimeoutError(), head, timeout),
        http_post.exceeded_limit(TimeoutError(), connector.Attempt(0.0), timeout),
    ]
    assert [text for row in rows for text in re.findall(r"`(.+?)`", row[2])] == said


def test_documented_signs_of_failure_are_those_of_the_code(page: Any) -> None:
    (row,) = (row[0] for row in page.table("what happened") if "internal GraphQL error" in row[0])
    assert set(re.findall(r"HC\d+", row)) == classify.FAILURE_CODES
    assert {int(status) for status in re.findall(r"\b5\d\d\b", row)} == classify.FAILURE_STATUSES
    assert f"`{classify.FAILURE_MESSAGE}`" in row


async def test_late_token_is_documented(page: Any) -> None:
    class Silent:
        async def get(self, *_: Any) -> None:
            await asyncio.Event().wait()

    counted = metrics.Metrics(prometheus_client.CollectorRegistry())
    kept = token_cache.TokenCache(
        cast("Any", Silent()), clock=clock.ManualClock(), rng=random.Random(1), metrics=counted
    )
    with pytest.raises(errors.UpstreamUnreachable) as late:
        await kept.get(identity.Credentials("demo", None, None), 0.01)
    await kept.close()
    (row,) = (row for row in page.table("what happened") if f"`{late.value.message}`" in row[0])
    assert f"({late.value.status}), so nothing was sent or billed" in row[0]
    assert not late.value.may_be_billed


def test_every_named_metric_exists_with_its_labels(page: Any) -> None:
    counted = metrics.Metrics(prometheus_client.CollectorRegistry())
    known = {measure.name: measure.labels for measure in counted.measures().values()}
    for name, labels, _ in page.table("metric"):
        assert known[name.strip("`").removesuffix("_total")] == tuple(re.split(r", ", labels.partition(":")[0]))
