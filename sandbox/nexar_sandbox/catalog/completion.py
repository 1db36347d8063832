"""Completions of a prefix: the catalog's own part numbers and names, no dictionary."""

import sqlite3

from nexar_sandbox.catalog import clauses, matching, records, reference_data

_END = "\U0010ffff"


def suggest(
    connection: sqlite3.Connection,
    reference: reference_data.ReferenceData,
    q: str,
    *,
    category_id: str | None,
    limit: int,
    part_numbers_only: bool,
) -> tuple[records.Suggestion, ...]:
    """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
    categories; inside `category_id` part numbers only."""
    start = matching.normalize(q)
    if not start:
        return ()
    suggestions = _part_numbers(connection, reference, start, category_id, limit)
    if not part_numbers_only and category_id is None:
        suggestions += [
            records.Suggestion(maker.name, "", "")
            for maker in reference.companies.values()
            if "manufacturer" in maker.roles and matching.normalize(maker.name).startswith(start)
        ]
        suggestions += [
            records.Suggestion(category.name, category.name, category.id)
            for category in reference.categories.values()
            if matching.normalize(category.name).startswith(start)
        ]
    return tuple(dict.fromkeys(suggestions))[:limit]


def _part_numbers(
    connection: sqlite3.Connection,
    reference: reference_data.ReferenceData,
    start: str,
    category_id: str | None,
    limit: int,
) -> list[records.Suggestion]:
    inside = clauses.Clause("1")
    if category_id is not None:
        below = reference.descendants(category_id) if category_id in reference.categories else ()
        inside = clauses.among("p.category", below)
    rows = connection.execute(
        "SELECT n.mpn, p.category FROM names n JOIN parts p ON p.id = n.part"  # noqa: S608 - a clause of clauses.py
        f" WHERE n.norm >= ? AND n.norm < ? AND {inside.sql} ORDER BY p.offers DESC, n.mpn, n.rowid LIMIT ?",
        (start, start + _END, *inside.parameters, limit),
    )
    categories = reference.categories
    return [records.Suggestion(mpn, categories[category].name, category) for mpn, category in rows]
