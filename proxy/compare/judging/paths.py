"""Paths in a response: how they are written, matched by rules, and classified by subject.

`results[*].items[*].offers[*].prices.USD[*]`; the whole response is `$`. A key that is not a plain name is quoted as
JSON: `facet_results.fields["specs.resistance.value"]`, so that no key in client data can pass for a path. A path in
parentheses, such as `(status)`, is about the whole response; only a rule that names it so matches it.
"""

import hashlib
import json
import re
from functools import cached_property
from typing import Literal, get_args

import msgspec

ELEMENT = "[*]"  # one of a list
STATUS, BODY, LATENCY = "(status)", "(body)", "(latency)"

_STEP = re.compile(r'\[\*\]|\["(?:[^"\\]|\\.)*"[^\]]*\]|[^.\[\]]+')


def steps(path: str) -> tuple[str, ...]:
    """The keys and `[*]` of a path. A key that is no plain name is quoted: `fields["specs.resistance.value"]`."""
    return tuple(_STEP.findall(path))


def is_whole(path: str) -> bool:
    """Whether a path is of the whole response rather than of its JSON."""
    return path.startswith("(")


class PathPattern(msgspec.Struct, frozen=True, dict=True):
    """What a rule is for: a path in which `*` is any one key and `**` any number of steps, none among them."""

    text: str

    @cached_property
    def _steps(self) -> tuple[str, ...]:
        return steps(self.text)

    def matches(self, path: str) -> bool:
        """Whether the pattern is of the whole path."""
        if is_whole(path) or is_whole(self.text):
            return path == self.text
        return _glob(self._steps, steps(path))


def _glob(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """In time of pattern × path at most: only the last `**` is ever tried again."""
    at, here, again, from_here = 0, 0, -1, 0
    while here < len(path):
        if at < len(pattern) and pattern[at] == "**":
            again, from_here = at, here
            at += 1
        elif at < len(pattern) and _fits(pattern[at], path[here]):
            at, here = at + 1, here + 1
        elif again >= 0:
            from_here += 1
            at, here = again + 1, from_here
        else:
            return False
    return all(step == "**" for step in pattern[at:])


def _fits(wanted: str, step: str) -> bool:
    return wanted == step or (wanted == "*" and step != ELEMENT)


Subject = Literal[
    "part",
    "offer",
    "price",
    "stock",
    "spec",
    "datasheet",
    "description",
    "category",
    "facet",
    "hits",
    "envelope",
    "other",
]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)

ROOT = "$"
ANY = "[*]"
MOST = 100  # characters of a key or a name that are shown
NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
ENVELOPE = frozenset(("$", "request", "msec", "user_country", "user_currency", "reference", "error", "snippet"))
STOCK = frozenset(("in_stock_quantity", "on_order_quantity", "on_order_eta"))
FIELDS: dict[str, Subject] = {
    "hits": "hits",
    "offers": "offer",
    "specs": "spec",
    "datasheets": "datasheet",
    "descriptions": "description",
    "short_description": "description",
    "category_uids": "category",
    "facet_results": "facet",
    "stats_results": "facet",
    "spec_metadata": "facet",
    **dict.fromkeys(STOCK, "stock"),
    "prices": "price",
}


def field(path: str, key: str) -> str:
    """The path of an object's field."""
    if not NAME.fullmatch(key) or len(key) > MOST:
        return ("" if path == ROOT else path) + f"[{_quoted(key)}]"
    return key if path == ROOT else f"{path}.{key}"


def element(path: str, label: str | None, turn: int = 1) -> str:
    """The place of an element, by what identifies it, and the how manyeth of those that nothing else tells apart."""
    start = "" if path == ROOT else path
    if label is None:
        return f"{start}[#{turn}]"
    plain = label and label.isprintable() and len(label) <= MOST and not any(mark in label for mark in '[]"#*')
    return f"{start}[{label if plain else _quoted(label)}{f' #{turn}' if turn > 1 else ''}]"


def each(path: str) -> str:
    """The path that all elements of a list share."""
    return ANY if path == ROOT else path + ANY


def subject(path: str) -> Subject:
    """What a program reads there. `part` and `offer` are the whole of one, or the list of them; a field of theirs that
    has no word of its own is `other`. A path does not say what its response is about: a whole brand is a `part`, too.
    """
    names = [step for step in steps(path) if step not in (ANY, "**", "results", "items", "item")]
    if not names:
        return "part"
    if names[0] in ENVELOPE or path in ("__class__", "results[*].__class__"):
        return "envelope"
    if names[0] == "offers" and len(names) > 1:
        return "price" if names[1] == "prices" else "stock" if names[1] in STOCK else "other"
    return FIELDS.get(names[0], "other")


def _quoted(text: str) -> str:
    """JSON, all in ASCII. What is cut keeps a digest, outside the quotes, where no text can forge one."""
    if len(text) <= MOST:
        return json.dumps(text)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{json.dumps(text[:MOST])}…{digest}"
