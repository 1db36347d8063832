"""The report as one HTML page that needs nothing else: no server, no network, no script to be read.

jinja2 escapes all that is data; a Content-Security-Policy that knows the page's own style and script by their hashes,
and allows nothing beside them, stands behind it. The texts and drawings are made here, the template only places them.
"""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from proxy.compare.reports import advice, charts, highlight, ordering, visible, words
from proxy.compare.result import Result, Row

FOLDER = Path(__file__).parent / "page"
LONG = 4_000  # characters of a curl line; a longer one would not be pasted anyway


def render(result: Result) -> str:
    """The page."""
    style, script = _asset("page.css"), _asset("page.js")
    page = _templates().get_template("page.html.j2")
    return page.render(
        result=result,
        style=Markup(style),  # noqa: S704 - the page's own files, which hold no data
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
        groups=ordering.groups(result),
        rows=ordering.rows(result),
        rules=ordering.rules(result),
        charts=[(endpoint, sides, charts.latency(sides.values())) for endpoint, sides in ordering.times(result.times)],
        steps=advice.steps(result),
        floor=_floor(result.rows),
        choices=_choices(result),
    )


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(words=words, pair=highlight.pair, whisker=charts.whisker)
    environment.filters.update(
        line=visible.line, block=visible.block, names=_names, command=_command, share=words.share
    )
    return environment


def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    own = {"script-src": script, "style-src": style}
    hashes = [f"{what} 'sha256-{_digest(text)}'" for what, text in own.items()]
    return "; ".join(["default-src 'none'", *hashes, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _floor(rows: tuple[Row, ...]) -> float:
    """Where the drawings of shares begin: a round share below all intervals, so that differences can be seen."""
    lowest = min((row.interval.low for row in rows if row.interval is not None), default=0.0)
    return next((floor for floor in (0.99, 0.95, 0.9, 0.75, 0.5) if lowest >= floor), 0.0)


def _choices(result: Result) -> dict[str, list[str]]:
    """What each filter offers: all that occurs."""
    groups = result.groups
    return {
        "endpoint": sorted({group.endpoint for group in groups}),
        "kind": sorted({group.kind for group in groups}),
        "cause": sorted({group.cause for group in groups}),
        "client": sorted({client for group in groups for client in group.clients}),
    }


def _names(values: tuple[str, ...]) -> str:
    """Names as an attribute that the script reads."""
    return json.dumps([visible.line(value) for value in values], ensure_ascii=False)


def _command(curl: str) -> str:
    return visible.line(curl, LONG)
