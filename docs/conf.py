"""Settings of the documentation site, which `make docs` builds with Sphinx from the Markdown files as they are."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = re.compile(r"\]\(([\w./-]+\.md)\)")

project = "v3bridge"
version = re.search(r'"(.+)"', (ROOT / "proxy/__init__.py").read_text(encoding="utf-8"))[1]
copyright = "the v3bridge authors, Apache-2.0"

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["docs/*.md", "*.md", "bench/README.md", "sandbox/README.md", "contract/*.md"]
# Headings get the anchors that GitHub gives them, so that a link works in both places.
myst_heading_anchors = 4
# Console output and JSON are shown shortened, which no highlighter accepts.
suppress_warnings = ["misc.highlighting_failure"]

# The theme loads nothing from other hosts; search runs in the browser, also from a folder without a server.
html_theme = "furo"
html_title = "v3bridge"
html_additional_pages = {"index": "start.html"}
html_show_sourcelink = False
html_copy_source = False
templates_path = ["templates"]


def navigation(_app, docname, source):
    """Make the site's navigation of the links in the README's section Documentation."""
    if docname == root_doc:
        pages = "\n".join(dict.fromkeys(PAGE.findall(source[0].partition("## Documentation\n")[2])))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def setup(app):
    """Connect the hooks of this file."""
    app.connect("source-read", navigation)
