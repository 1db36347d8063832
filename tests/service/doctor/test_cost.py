"""Tests of the stage cost: estimates of typical and of recorded requests."""

from pathlib import Path
from typing import Any

import pytest

from proxy.doctor import cost

from .conftest import Examine, diagnoses, the_finding

SANDBOX = "applications: {demo: {apikeys: [a-key], parts: 2000}}\n"
TWO = "applications: {{demo: {{apikeys: [a-key], parts: {}}}, other: {{apikeys: [b-key], parts: {}}}}}\n"
LINE = (
    '10.0.0.1 - - [%s +0000] "GET /v3/parts/match?apikey=hidden&queries=[{%%22mpn%%22:%%22%s%%22}] HTTP/1.1" 200 10\n'
)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Two requests in an hour, of three parts at worst each, one of them twice."""
    file = tmp_path / "access.log"
    times = ("01/Nov/2026:10:00:00", "01/Nov/2026:10:30:00", "01/Nov/2026:11:00:00")
    file.write_text("".join(LINE % (time, mpn) for time, mpn in zip(times, ("A1", "A1", "B2"), strict=True)))
    return file


async def test_typical_requests_cost_what_their_plans_may_return(examine: Examine) -> None:
    findings = await examine(cost.check, SANDBOX)
    assert diagnoses(findings) == []
    assert [finding.text for finding in findings] == [
        "parts/match, one part number: at most 3 parts",
        "parts/match, one part number with limit 20: at most 20 parts",
        "parts/match, 20 part numbers: at most 60 parts",
        "parts/search, one page: at most 10 parts",
        "parts/{uid}: at most 1 part",
        "brands, sellers and categories: free",
        "a query that is repeated within 23 h 30 min is free",
        "parts: 2000 covers at least 666 requests for one part number",
    ]
    assert the_finding(findings, "limit_cost").application == "demo"


async def test_a_month_of_recorded_requests_is_compared_with_the_limits(examine: Examine, recorded: Path) -> None:
    findings = await examine(cost.check, SANDBOX, (recorded,))
    text = the_finding(findings, "recorded_cost").text
    assert text == f"{recorded}: 3 requests, at most 9 parts without a cache: /parts/match 9"
    assert diagnoses(findings) == ["quota_short"]
    month = "30 days like these 1.0 hours: at most 6,480 parts without a cache"
    assert the_finding(findings, "quota_short").text == f"{month}, and the applications' limits allow 2,000 parts"
    assert "hidden" not in str(findings)


@pytest.mark.parametrize("parts", [(6480, 0), (3000, 3480), ("unlimited", 5)])
async def test_limits_that_suffice_are_no_mistake(examine: Examine, recorded: Path, parts: Any) -> None:
    findings = await examine(cost.check, TWO.format(*parts), (recorded,))
    assert diagnoses(findings) == []
    assert "at most 6,480 parts" in the_finding(findings, "month_cost").text


@pytest.mark.parametrize("content", [None, "", "no request at all\n" * 3])
async def test_a_file_without_requests_is_named(examine: Examine, tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "requests.txt"
    if content is not None:
        file.write_text(content)
    findings = await examine(cost.check, SANDBOX, (file,))
    assert diagnoses(findings) == ["requests_unreadable"]
    assert str(file) in the_finding(findings, "requests_unreadable").text
