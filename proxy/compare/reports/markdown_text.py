"""Data in Markdown: nothing in it is read as Markdown or HTML, and nothing mentions anybody or becomes a link."""

import re

from proxy.compare.reports import visible

NAME, SENTENCE = 160, 240  # characters of a name and of a sentence

_PLAIN = re.compile(r"[^`|\\\n<&]+")
_SPLIT = "\u200b"  # has no width: what stands around it reads as before, but is no mention and no address any more
_SPECIAL = re.compile(rf":(?! )|_|[^\w: \u00a0{_SPLIT},.;()'\"%=?/+°–…-]")
_LINKS = re.compile(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)|(?<=GH-)", re.IGNORECASE)


def code(text: str) -> str:
    """A name as code: between backticks where these hold it, else as HTML in which every sign is an entity."""
    shown = visible.line(text, NAME)
    if _PLAIN.fullmatch(shown):
        return f"`{shown}`"
    return f"<code>{name(text)}</code>" if shown else "–"


def name(text: str) -> str:
    """A name in the text, or in an HTML element."""
    return _plain(visible.line(text, NAME))


def sentence(text: str) -> str:
    """A sentence that may hold data."""
    return _plain(visible.line(text, SENTENCE))


def fenced(language: str, lines: list[str]) -> str:
    """A block of code whose fence is longer than any in it."""
    body = "\n".join(lines)
    fence = "`" * (1 + max(map(len, re.findall("`+", body)), default=2))
    return f"{fence}{language}\n{body}\n{fence}"


def _plain(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", _LINKS.sub(_SPLIT, text))
