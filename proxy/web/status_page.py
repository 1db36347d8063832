"""The status of the service as a page: templates/status.html.j2, filled from the state that `status.read` returns."""

import calendar
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import unquote

from proxy.kit.wording import duration
from proxy.web import pages

REFRESH_SECONDS = 60  # after which a browser reads the page again


class Bar(NamedTuple):
    """Bar of a day: its date, its parts (None: it is to come), and its height in percent of the highest one."""

    date: str
    parts: int | None
    height: float


def render(found: dict[str, Any]) -> tuple[str, str]:
    """Return the page, and its Content-Security-Policy."""
    now, applications = _time(found["at"]), dict[str, list[dict[str, Any]]]()
    for row in found["usage"]:
        applications.setdefault(row["application"], []).append(row)
    page = TEMPLATE.render(found=found, applications=applications, now=now, refresh=REFRESH_SECONDS)
    return page, TEMPLATE.policy


def _bars(days: Mapping[str, int], now: datetime) -> list[Bar]:
    """Return a bar for each day of the present month."""
    first, number = now.date().replace(day=1), calendar.monthrange(now.year, now.month)[1]
    month = [first + timedelta(place) for place in range(number)]
    parts = [days.get(day.isoformat(), 0) if day <= now.date() else None for day in month]
    highest = max(each or 0 for each in parts) or 1
    return [
        Bar(_day(day.isoformat(), now), each, round(100 * (each or 0) / highest, 1))
        for day, each in zip(month, parts, strict=True)
    ]


def _time(text: str) -> datetime:
    """Return a date or time (RFC 3339) as a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _day(text: str, now: datetime) -> str:
    """Return the day of a date or time, such as `Tue 1 Dec`, with its year unless that is the present one."""
    at = _time(text)
    return f"{at:%a} {at.day} {at:%b}" + (f" {at.year}" if at.year != now.year else "")


def _distance(text: str, now: datetime) -> str:
    """Return how far a time is from the present one in its largest unit, such as `2 h`."""
    return " ".join(duration(max(1.0, abs((_time(text) - now).total_seconds()))).split()[:2])


TEMPLATE = pages.Template(pages.FOLDER / "status.html.j2", bars=_bars, day=_day, distance=_distance, decoded=unquote)
