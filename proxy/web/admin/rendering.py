"""HTML of the admin interface: jinja2 templates with one layout. Everything shown is escaped and printable.

The script of a page renews its pieces one by one, so that only those that have changed are sent. A template writes
`{% call live("totals", "tbody") %}…{% endcall %}`, which makes an element with this `id`, and with the digest of its
content in `data-live`. Pieces may contain pieces: of those the outer one knows the place only.
"""

import asyncio
import base64
import functools
import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from proxy.explain import explanation
from proxy.kit import wording
from proxy.telemetry.metrics import SECONDS
from proxy.web.admin import burn_down_chart
from proxy.web.admin.page import AdminPage, PageData

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent / "templates"
_PLACE = re.compile(r'<(\w+) id="([^"]+)" data-live></\1>')  # no text of others looks like it: all of it is escaped


class LivePiece(NamedTuple):
    """Content of the element `id`; in `html` the pieces within it are empty elements."""

    id: str
    digest: str
    html: str


class LivePieces:
    """Pieces of a page, collected while its template is rendered."""

    def __init__(self) -> None:
        self._pieces: dict[str, LivePiece] = {}

    def add(self, name: str, tag: str, html: str) -> str:
        """Add the content of a piece; return its place, an empty element. A name that is taken is changed."""
        while (attribute := escape(name)) in self._pieces:
            name += "-"
        self._pieces[attribute] = LivePiece(name, _digest(f"{name}\n{html}"), html)
        return f'<{tag} id="{attribute}" data-live></{tag}>'

    def fill(self, html: str) -> str:
        return _PLACE.sub(self._element, html)

    def changed(self, held: Collection[str]) -> list[LivePiece]:
        """Return the pieces whose digest is not among those that a page holds, outer ones first."""
        return [piece for piece in reversed(self._pieces.values()) if piece.digest not in held]

    def _element(self, place: re.Match[str]) -> str:
        tag, attribute = place.groups()
        piece = self._pieces[attribute]
        return f'<{tag} id="{attribute}" data-live="{piece.digest}">{self.fill(piece.html)}</{tag}>'


def _digest(text: str) -> str:
    """Return eight characters: a page sends one for each of its pieces, in a header."""
    return base64.urlsafe_b64encode(hashlib.blake2b(text.encode(), digest_size=6).digest()).decode()


class Viewer(NamedTuple):
    """Role of the token or session that a page is rendered for, and the CSRF token of the session."""

    role: str
    csrf: str


def page(page: AdminPage, pages: tuple[AdminPage, ...], data: PageData, viewer: Viewer, **values: str) -> str:
    """Render a page; `values` are those of the layout."""
    pieces = LivePieces()
    html = _page(page, pieces, data, pages=pages, json=f"/{page.name}.json", **viewer._asdict(), **values)
    return pieces.fill(html)


def changes(page: AdminPage, data: PageData, held: Collection[str], viewer: Viewer) -> list[LivePiece]:
    """Render the pieces of a page that have changed: those with other digests than the `held` ones."""
    pieces = LivePieces()
    _page(page, pieces, data, **viewer._asdict())
    return pieces.changed(held)


def _page(page: AdminPage, pieces: LivePieces, data: PageData, **values: Any) -> str:
    return render(f"{page.name}.html", page.title, name=page.name, data=data, pieces=pieces, **values)


def render(template: str, title: str, **values: Any) -> str:
    """Render a template. Values that the layout needs have defaults: without `pages` it has no navigation."""
    frame = {"pages": (), "name": "", "json": "", "role": "operator", "csrf": "", "notice": "", "shown": ""}
    return _environment().get_template(template).render(title=title, **{**frame, **values})


async def prepare() -> None:
    """Import jinja2 and compile all templates, once, without delaying the requests of v3 clients."""
    if not _environment.cache_info().currsize:
        await asyncio.to_thread(_compile_templates)


def _compile_templates() -> None:
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@functools.cache
def _environment() -> "jinja2.Environment":
    # Imported with the first page: a service whose pages are not opened has no use for it.
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
    )
    environment.filters |= {
        "time": lambda value: Markup(time_element(value)),  # noqa: S704 - it is made of digits
        "number": number,
        "percent": percent,
        "duration": duration,
        "bytes": size,
        "compact": lambda value: msgspec.json.encode(value).decode(),
        "indented": lambda value: msgspec.json.format(msgspec.json.encode(value), indent=2).decode(),
        "shown_value": explanation.shown_value,
        "ranges": explanation.ranges,
        "burn_down_chart": burn_down_chart.chart,
        "latency": latency,
        "short_time": lambda value, now: Markup(short_time_element(value, now)),  # noqa: S704 - as above
        "readable": lambda value: unquote(value.replace("+", " ")),
        "points": points,
    }

    @jinja2.pass_context
    def csrf_field(context: jinja2.runtime.Context) -> Markup:
        return Markup('<input type="hidden" name="csrf" value="{}">').format(context["csrf"])

    @jinja2.pass_context
    def live(context: jinja2.runtime.Context, name: str, tag: str = "div", *, caller: Callable[[], str]) -> Markup:
        return Markup(context["pieces"].add(_printable(name), tag, str(caller())))  # noqa: S704 - it is made of escaped text

    environment.globals |= {"csrf_field": csrf_field, "live": live}
    return environment


def _printable(value: Any) -> Any:
    """Make text of clients, such as names and targets, visible; other values stay."""
    return wording.printable(value) if type(value) is str else value


def time_element(value: float | None) -> str:
    """Return the element of a time in seconds since 1970, in UTC; a dash for None."""
    if value is None:
        return "–"
    when = datetime.fromtimestamp(value, UTC)
    return f'<time datetime="{when:%Y-%m-%dT%H:%M:%SZ}">{when:%Y-%m-%d %H:%M:%S}</time>'


def short_time_element(value: float, now: float) -> str:
    """Return the element of a time in UTC, without the date where it is today's."""
    element, today = time_element(value), f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
    return element.replace(f">{today} ", ">")


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with separators of thousands; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage; a dash for None."""
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def duration(seconds: float | None) -> str:
    """Return seconds in the two largest units; a dash for None."""
    return "–" if seconds is None else wording.duration(seconds)


def latency(seconds: float | None) -> str:
    """Return a percentile of durations; outside of the bounds of the histogram the bound is all that is known."""
    if seconds is None:
        return "–"
    if seconds <= SECONDS[0]:
        return f"< {SECONDS[0] * 1000:.0f} ms"
    if seconds >= SECONDS[-1]:
        return f"> {SECONDS[-1]:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 1 else duration(seconds)


def points(values: Sequence[float | None], width: float, height: float, top: float | None = None) -> list[str]:
    """Return the points of the lines of a sparkline, for SVG's `polyline`: one line for each run without a gap.

    `top` is the value at the upper edge; without it, it is the largest.
    """
    highest = top or max((number for number in values if number is not None), default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    lines: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            lines.append([])
        else:
            lines[-1].append(f"{place * step:.1f},{height - height * min(1.0, value / highest):.1f}")
    # A single value is no line: it is drawn as a short one.
    return [" ".join(line if len(line) > 1 else [*line, *line]) for line in lines if line]


def size(value: float | None) -> str:
    """Return bytes in the largest binary unit, such as `64.0 MiB`; a dash for None."""
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:,.0f} B" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} GiB"
