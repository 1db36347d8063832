"""Paths in a response: syntax, and patterns of rules.

`results[*].items[*].offers[*].prices.USD[*]`; the whole response is `$`. A key that is not a plain name is quoted as
JSON: `facet_results.fields["specs.resistance.value"]`, so that no key in client data can be mistaken for a path. A path
in parentheses, such as `(status)`, is about the whole response; only a rule that names it exactly matches it.
"""

import hashlib
import json
import re

ELEMENT = "[*]"  # step for the elements of a list
WHOLE = STATUS, BODY = "(status)", "(body)"  # paths about the whole response rather than its JSON

_STEP = re.compile(r'\[\*\]|\["(?:[^"\\]|\\.)*"[^\]]*\]|[^.\[\]]+')


def steps(path: str) -> tuple[str, ...]:
    """Split a path into keys and `[*]`, keys unquoted: `fields["specs.resistance.value"]` is two steps."""
    return tuple(_STEP.findall(path))


def matches(pattern: str, path: str) -> bool:
    """Return true if a rule's pattern matches the whole path: `*` any one key, `**` any number of steps, also none.

    Takes O(pattern × path): only the last `**` is ever retried."""
    if path in WHOLE or pattern in WHOLE:
        return path == pattern
    wanted, found = steps(pattern), steps(path)
    at, here, again, from_here = 0, 0, -1, 0
    while here < len(found):
        if at < len(wanted) and wanted[at] == "**":
            again, from_here = at, here
            at += 1
        elif at < len(wanted) and (wanted[at] == found[here] or (wanted[at] == "*" and found[here] != ELEMENT)):
            at, here = at + 1, here + 1
        elif again >= 0:
            from_here += 1
            at, here = again + 1, from_here
        else:
            return False
    return all(step == "**" for step in wanted[at:])


ROOT = "$"
MOST = 100  # longest shown key or label, in characters
NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
STOCK = frozenset(("in_stock_quantity", "on_order_quantity", "on_order_eta"))


def field(path: str, key: str) -> str:
    """Append an object's key to a path."""
    if not NAME.fullmatch(key) or len(key) > MOST:
        return ("" if path == ROOT else path) + f"[{_quoted(key)}]"
    return key if path == ROOT else f"{path}.{key}"


def element(path: str, label: str | None, turn: int = 1) -> str:
    """Append an element to a place: its label, and its ordinal among elements with the same label."""
    start = "" if path == ROOT else path
    if label is None:
        return f"{start}[#{turn}]"
    plain = label and label.isprintable() and len(label) <= MOST and not any(mark in label for mark in '[]"#*')
    return f"{start}[{label if plain else _quoted(label)}{f' #{turn}' if turn > 1 else ''}]"


def each(path: str) -> str:
    """Append the step for the elements of a list."""
    return ELEMENT if path == ROOT else path + ELEMENT


def is_changing(path: str) -> bool:
    """Return true for prices and stock, which may change within one run."""
    names = [step for step in steps(path) if step not in (ELEMENT, "results", "items", "item")]
    return names[:1] == ["offers"] and len(names) > 1 and (names[1] == "prices" or names[1] in STOCK)


def _quoted(text: str) -> str:
    """Quote a key as ASCII JSON. A truncated key gets a digest outside the quotes, which client data cannot forge."""
    if len(text) <= MOST:
        return json.dumps(text)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{json.dumps(text[:MOST])}…{digest}"
