"""Help with words: completions, other spellings, and the query's terms highlighted in a description."""

import re

from graphql import GraphQLFieldResolver

from proxy.sandbox.catalog import records
from proxy.sandbox.graphql import context, views

_WORD = re.compile(r"[^\W_]+")


def suggest(
    _root: None,
    info: context.Info,
    q: str,
    categoryId: str | None = None,  # noqa: N803 (the schema's argument names)
    partNumbersOnly: bool | None = None,  # noqa: N803
) -> tuple[records.Suggestion, ...]:
    """Completions of what was typed."""
    return info.context.catalog.suggest(q, categoryId or None, part_numbers_only=bool(partNumbersOnly))


def spelling(_root: None, info: context.Info, q: str) -> tuple[records.SpellingCorrection, ...]:
    """Other spellings that find parts."""
    return info.context.catalog.spelling(q)


def description(hit: views.Hit, _info: context.Info) -> str:
    """The short description, highlighted."""
    return highlighted(hit.part.record.short_description, hit.query)


def highlighted(text: str, query: str) -> str:
    """`text` with <strong> around the words of `query`; the last of them may be the beginning of a word.

    Nothing is escaped: the text is the catalog's own.
    """
    terms = [word.lower() for word in _WORD.findall(query)]
    if not terms:
        return text
    whole, last = set(terms), terms[-1]

    def mark(found: re.Match[str]) -> str:
        word = found[0].lower()
        return f"<strong>{found[0]}</strong>" if word in whole or word.startswith(last) else found[0]

    return _WORD.sub(mark, text)


def no_explanation(_hit: views.Hit, _info: context.Info) -> str:
    """Always empty (contract graphql.md §1.2)."""
    return ""


def hit_cache_id(hit: views.Hit, _info: context.Info) -> str:
    """A key of the result."""
    return views.cache_id("hit", hit.part.record.id, hit.query, *hit.part.market.key)


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supSuggest": suggest,
    "Query.supSpellingCorrection": spelling,
    "SupPartResult._cacheId": hit_cache_id,
    "SupPartResult.description": description,
    "SupPartResult.explain": no_explanation,
}
