"""HTML pages of the service: one stylesheet, self-contained, in light and dark.

Jinja2 escapes all data; as a second line of defense, the Content-Security-Policy of a page permits only its own style
and script, by their hashes.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from proxy.kit import wording

FOLDER = Path(__file__).parent / "templates"
STYLE = (FOLDER / "page.css").read_text(encoding="utf-8")


class Template:
    """Template of a page, which extends `page.html.j2`, and its `script`, if it has one."""

    def __init__(self, path: Path, script: str = "", **filters: Any) -> None:
        loader = jinja2.FileSystemLoader((path.parent, FOLDER))
        environment = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
        )
        environment.globals.update(style=_own(STYLE), script=_own(script), counted=wording.counted)
        environment.filters.update(line=wording.printable, duration=wording.duration, number="{:,}".format, **filters)
        self._template = environment.get_template(path.name)
        scripts = f"script-src {_source(script)}; connect-src 'self'; " if script else ""
        own = f"default-src 'none'; style-src {_source(STYLE)}; {scripts}img-src data:; base-uri 'none'"
        self.policy = f"{own}; form-action 'none'; frame-ancestors 'none'"

    def render(self, **values: Any) -> str:
        """Return the page."""
        return self._template.render(**values)


def _own(text: str) -> Markup:
    return Markup(text)  # noqa: S704 - a file of the program, which holds no data


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HOME = Template(FOLDER / "home.html.j2")
