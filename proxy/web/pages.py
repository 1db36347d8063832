"""HTML pages of the service: one stylesheet, self-contained, in light and dark. Jinja2 escapes all data; besides, the
Content-Security-Policy of a page permits only its own style and script, by their hashes.
"""

import base64
import calendar
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jinja2
from markupsafe import Markup

from proxy import kit

FOLDER = Path(__file__).parent / "templates"
STYLE = (FOLDER / "page.css").read_text(encoding="utf-8")


class Template:
    """Template of a page, which extends `page.html.j2`, with its `script`, if it has one, and its `policy`."""

    def __init__(self, path: Path, script: str = "", **filters: Any) -> None:
        loader = jinja2.FileSystemLoader((path.parent, FOLDER))
        environment = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
        )
        own = {"style": Markup(STYLE), "script": Markup(script)}  # noqa: S704 - files of the program, without data
        environment.globals.update(own, counted=kit.counted)
        environment.filters.update(line=kit.printable, duration=kit.duration, number="{:,}".format, **filters)
        self.render = environment.get_template(path.name).render
        digests = (hashlib.sha256(text.encode()).digest() for text in (STYLE, script))
        of_style, of_script = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
        scripts = f"script-src {of_script}; connect-src 'self'; " if script else ""
        sources = f"default-src 'none'; style-src {of_style}; {scripts}img-src data:; base-uri 'none'"
        self.policy = f"{sources}; form-action 'none'; frame-ancestors 'none'"


def _bars(days: Mapping[str, int], now: datetime) -> list[dict[str, Any]]:
    """Return date, parts (None: to come) and height in percent of the highest for each day of the present month."""
    first, number = now.date().replace(day=1), calendar.monthrange(now.year, now.month)[1]
    month = [first + timedelta(place) for place in range(number)]
    parts = [days.get(day.isoformat(), 0) if day <= now.date() else None for day in month]
    highest = max(each or 0 for each in parts) or 1
    return [
        {"date": _day(day.isoformat(), now), "parts": each, "height": round(100 * (each or 0) / highest, 1)}
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
    return " ".join(kit.duration(max(1.0, abs((_time(text) - now).total_seconds()))).split()[:2])


HOME = Template(FOLDER / "home.html.j2")
STATUS = Template(FOLDER / "status.html.j2", bars=_bars, day=_day, distance=_distance, decoded=unquote)
