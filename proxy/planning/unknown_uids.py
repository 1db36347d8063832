"""Uids in the filters of a search that lead to nobody, so that a client can be told why nothing is found. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from proxy.mapping import tables
from proxy.planning.lucene import Condition


class UnknownUid(NamedTuple):
    """A value of a filter, and the field that it was given for."""

    field: str
    uid: str


def of_parts(book: tables.Tables, conditions: Iterable[Condition]) -> tuple[UnknownUid, ...]:
    """Those in conditions on parts, each once. Raises UnlistedError where a list of the service has to tell."""
    found = (
        UnknownUid(each.field, value)
        for each in conditions
        if (entry := book.search.get(each.field)) is not None and entry.uid
        for value in each.values
        if "*" not in value and not _leads_to(book, entry.uid, value)
    )
    return tuple(dict.fromkeys(found))


def _leads_to(book: tables.Tables, kind: str, uid: str) -> bool:
    identity = book.uids[kind].identity(uid)
    if identity is None:
        return False
    return identity.id is not None or bool(book.ids(kind, identity.name or ""))
