"""HTML report: one self-contained page, without a script.

jinja2 escapes all data; as a second line of defense, a Content-Security-Policy permits only the page's own style, by
its hash.
"""

import base64
import hashlib
from pathlib import Path

import jinja2
from markupsafe import Markup

from proxy import kit
from proxy.tools.compare.judging.result import ComparisonResult
from proxy.tools.compare.reports import words

FOLDER = Path(__file__).parent / "page"


def render(result: ComparisonResult) -> str:
    """Render the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(words=words, pair=words.pair, counted=kit.counted, moment=kit.rfc3339)
    environment.filters.update(line=words.line)
    style = (FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        result=result,
        style=Markup(style),  # noqa: S704 - the page's own file, which holds no data
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        took=kit.duration(max(0.0, result.ended - result.started)),
    )
