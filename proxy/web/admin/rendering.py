"""HTML of the admin interface: jinja2 templates with one layout. Everything shown is escaped and printable."""

import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.web.admin.page import AdminPage, PageData

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent / "templates"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def page(page: AdminPage, pages: tuple[AdminPage, ...], data: PageData, *, csrf: str, notice: str = "") -> str:
    """Render a page with its data."""
    return render(
        f"{page.name}.html",
        title=page.title,
        name=page.name,
        pages=pages,
        json=f"/{page.name}.json",
        csrf=csrf,
        notice=notice,
        data=data,
    )


def render(template: str, title: str, **values: Any) -> str:
    """Render a template. Values that the layout needs have defaults: without `pages` it has no navigation."""
    frame = {"pages": (), "name": "", "json": "", "csrf": "", "notice": ""}
    return _environment().get_template(template).render(title=title, **{**frame, **values})


@functools.cache
def _environment() -> "jinja2.Environment":
    # Imported with the first page: a service whose pages nobody opens has no use for it.
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
    }

    @jinja2.pass_context
    def csrf_field(context: jinja2.runtime.Context) -> Markup:
        return Markup('<input type="hidden" name="csrf" value="{}">').format(context["csrf"])

    environment.globals["csrf_field"] = csrf_field
    return environment


def _printable(value: Any) -> Any:
    """Make control characters and marks of writing direction visible: names and targets come from anybody."""
    if type(value) is not str or value.isprintable():
        return value
    return "".join(each if each.isprintable() or each == "\n" else _visible(each) for each in value)


def _visible(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x1_0000 else f"\\U{number:08x}"


def time_element(value: float | None) -> str:
    """Return the element of a time in seconds since 1970, in UTC; a dash for None."""
    if value is None:
        return "–"
    when = datetime.fromtimestamp(value, UTC)
    return f'<time datetime="{when:%Y-%m-%dT%H:%M:%SZ}">{when:%Y-%m-%d %H:%M:%S}</time>'


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with separators of thousands; a dash for None."""
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage; a dash for None."""
    return "–" if value is None else f"{value * 100:.{digits}f} %"


def duration(seconds: float | None) -> str:
    """Return seconds in the two largest units, such as `2 h 5 min`; below a second in ms; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def size(value: float | None) -> str:
    """Return bytes in the largest binary unit, such as `64.0 MiB`; a dash for None."""
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:,.0f} B" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.1f} GiB"
