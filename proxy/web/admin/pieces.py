"""Pieces of a page that its script renews one by one, so that only those that have changed are sent.

A template writes `{% call live("totals", "tbody") %}…{% endcall %}`, which makes an element with this `id`, and with
the digest of its content in `data-live`. Pieces may contain pieces: of those the outer one knows the place only.
"""

import base64
import hashlib
import re
from collections.abc import Collection
from html import escape
from typing import NamedTuple

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
        """Return the HTML with the pieces in their places."""
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
