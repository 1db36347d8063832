"""Values of both sides, safe to display and with their differences marked."""

import os.path
from typing import NamedTuple

import msgspec

from proxy.kit.wording import printable

LINE = 300  # most characters of a single-line value
WIDTH = 72  # a shorter JSON value stays on one line
SHOWN = 2_000  # most characters of a side


class Marked(NamedTuple):
    """Text of one side: what both have at its beginning and end, and what differs between."""

    before: str
    differing: str
    after: str


def line(text: str, most: int = LINE) -> str:
    """Make a text of a client visible in one line: it cannot control a terminal or mislead a reader."""
    cut = f"… ({len(text) - most:,} characters more)" if len(text) > most else ""
    return printable(text[:most]).replace("\n", "\\n") + cut


def pair(baseline: str | None, candidate: str | None) -> tuple[Marked | None, Marked | None]:
    """Mark where two JSON texts differ; None is a side without a value."""
    if baseline is None or candidate is None:
        return _alone(baseline), _alone(candidate)
    one, other = _laid_out(baseline), _laid_out(candidate)
    head = len(os.path.commonprefix((one, other)))  # noqa: RUF071 - of texts, by characters
    rest = min(len(one), len(other)) - head
    tail = min(rest, len(os.path.commonprefix((one[::-1], other[::-1]))))  # noqa: RUF071
    return _marked(one, head, tail), _marked(other, head, tail)


def _alone(text: str | None) -> Marked | None:
    return None if text is None else Marked("", _laid_out(text), "")


def _laid_out(text: str) -> str:
    if len(text) > WIDTH:
        text = msgspec.json.format(text, indent=2)
    return printable(text[:SHOWN]) + ("…" if len(text) > SHOWN else "")


def _marked(text: str, head: int, tail: int) -> Marked:
    end = len(text) - tail
    return Marked(text[:head], text[head:end], text[end:])
