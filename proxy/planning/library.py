"""The documents and mappers of every view that was asked for, compiled once each.

Clients ask for few views and repeat them; a bounded number is kept. The pipeline is the only user.
"""

from typing import NamedTuple

import cachetools

from proxy.mapping import compiler, loader
from proxy.model import View
from proxy.planning import match, operations

VIEWS_MAX = 512


class MatchView(NamedTuple):
    """What parts/match needs in one view."""

    documents: match.Documents
    part: compiler.Compiled


class Library:
    """Compiles on first use. Not for use by several threads."""

    def __init__(self, rulebook: loader.Rulebook) -> None:
        self._rulebook = rulebook
        self._matches: cachetools.LRUCache[tuple[View, bool], MatchView] = cachetools.LRUCache(VIEWS_MAX)
        self._count = operations.multi_match(None)

    def match(self, view: View, skus: bool = False) -> MatchView:
        """Documents and mapper for parts in this view. `skus`: matching looks at SKUs, whatever the view hides."""
        known = self._matches.get((view, skus))
        if known is None:
            known = self._matches[view, skus] = self._compile_match(view, skus)
        return known

    def _compile_match(self, view: View, skus: bool) -> MatchView:
        needs = ("mpn", "sellers.offers.sku") if skus else ("mpn",)
        part = compiler.compile_object(self._rulebook, "Part", view, needs)
        documents = match.Documents(
            operations.multi_match(part),
            operations.search("supSearchMpn", part),
            operations.search("supSearch", part),
            self._count,
        )
        return MatchView(documents, part)
