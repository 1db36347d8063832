"""Queries of the core: beginnings of lists of the upstream, by the key under which a list is stored. Pure.

Dialects make queries of what their clients send, and read results by them. Two queries with the same key need the same
list, whatever dialect, projection or page they come from.
"""

import hashlib
import re
import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proxy import model
from proxy.store.protocol import Hit, Result, Want

SearchRoot = Literal["supSearch", "supSearchMpn"]
Root = Literal["supMultiMatch", "supParts", "document"] | SearchRoot

_UID = re.compile(r"[0-9a-f]{16}")
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_encode = msgspec.json.Encoder(order="deterministic").encode
_NUMBERS = ("mpn", "mpnOrSku", "sku")
_NO_GROUP: tuple[list["Query"], int, frozenset[str]] = [], 0, frozenset()


class Received(NamedTuple):
    """Value of the root field of an operation that was passed on, and the errors beside it. `parts` are in it, and
    `lost` nulls are where parts would be."""

    value: bytes
    reported: Sequence[model.GraphQLError]
    parts: int
    lost: int


class PassedOn(NamedTuple):
    """Operation of a client that is sent as it stands, and the reader of its data. What it returns is not stored if it
    is private."""

    operation: model.EncodedOperation
    read: Callable[[Any], Received]
    is_private: bool = False


class Query(NamedTuple):
    """Elements `start` to `end` of a list. The list is that of a root field and its arguments, which `criteria` are.

    `general` is the key of the same query without its maker. `first` is the element that the stored list begins with.
    What is `passed_on` is fetched as it stands instead.
    """

    root: Root
    criteria: dict[str, Any]
    key: str
    start: int
    end: int
    general: str | None = None
    first: int = 0
    passed_on: PassedOn | None = None

    @property
    def want(self) -> Want:
        """What the store is asked for."""
        if self.passed_on is not None:
            return Want(self.key, 1, self.passed_on.operation.parts_max)
        if self.root != "supParts":
            return Want(self.key, self.end - self.first)
        return Want(self.key, 1, part=self.criteria["id"])

    @property
    def numbers(self) -> frozenset[str]:
        return frozenset(str(self.criteria[name]) for name in _NUMBERS if name in self.criteria)

    @property
    def is_sent_alone(self) -> bool:
        """Whether its operation can have no other query."""
        return self.passed_on is not None or self.root in ("supSearch", "supSearchMpn")

    @property
    def operation(self) -> str:
        """What all queries of an operation have in common: the root field, and its options."""
        options = self.criteria.get("options")
        return f"{self.root} {_encode(options).decode()}" if options else self.root

    def key_with_maker(self, name: str) -> str | None:
        """Return the key of the query for the same number of a maker; None for one that is not for a number alone."""
        if self.root != "supMultiMatch" or self.criteria.keys() != {"mpn"} or self.first:
            return None
        return _query(self.root, self.criteria | {"manufacturer": name}, 0, 1).key

    def as_list_of_its_own(self) -> "Query":
        """Return the query for a list that begins with its first element: what lies before it is not paid for."""
        return self._replace(key=f"{self.key} from {self.start}", first=self.start)

    def is_covered(self, result: Result, first: int) -> bool:
        """Return whether a result that begins with the element `first` has all of its elements that there are."""
        return first <= self.start and (self.end <= first + result.asked or result.hits <= first + result.asked)


class Element(NamedTuple):
    """Element of a list: a part, decoded and as the upstream sent it, and what the search says of it."""

    part: Any
    body: bytes
    hit: Hit


class Page(NamedTuple):
    """Elements on a page, and all hits."""

    elements: list[Element]
    hits: int


def fold(number: str) -> str:
    """Return a part number as it is sent and stored: without outer blanks, ASCII letters in upper case."""
    return number.strip(" \t\r\n").translate(_UPPER)


def matching(
    start: int,
    end: int,
    *,
    mpn: str | None = None,
    mpn_or_sku: str | None = None,
    sku: str | None = None,
    manufacturer: str | None = None,
    seller: str | None = None,
    options: dict[str, Any] | None = None,
) -> Query:
    """Make the query of a supMultiMatch; `options`, such as filters, are those of its operation."""
    criteria = {
        "mpn": fold(mpn) if mpn else None,
        "mpnOrSku": fold(mpn_or_sku) if mpn_or_sku else None,
        "sku": sku,
        "manufacturer": manufacturer,
        "seller": seller,
        "options": options or None,
    }
    query = _query("supMultiMatch", criteria, start, end)
    if query.criteria.keys() != {"mpn", "manufacturer"}:
        return query
    return query._replace(general=_query(query.root, {"mpn": query.criteria["mpn"]}, 0, 1).key)


def part(uid_or_id: str) -> Query:
    """Make the query for a part by its uid or id."""
    return _query("supParts", {"id": uid_or_id}, 0, 1)


def valid_uids(uids: Iterable[str]) -> list[str]:
    """Return the well-formed v3 uids, without duplicates, in order. Others are not sent: supParts accepts upstream
    ids, too."""
    return [uid for uid in dict.fromkeys(uids) if _UID.fullmatch(uid)]


def search(root: SearchRoot, start: int, end: int, arguments: dict[str, Any]) -> Query:
    """Make the query of a search with these arguments, beside those of its page and market."""
    return _query(root, arguments, start, end)


def document(digest: str, passed_on: PassedOn) -> Query:
    """Make the query of an operation that is passed on; `digest` is that of its document and variables."""
    return Query("document", {}, f"document {digest}", 0, 1, passed_on=passed_on)


def grouped(queries: Iterable[Query], parts_max: int) -> list[list[Query]]:
    """Return queries in groups that one operation can carry: of one root field and its options, with no number twice,
    and at most so many parts and queries. Searches, and what is passed on, come alone."""
    groups: list[list[Query]] = []
    latest: dict[str, tuple[list[Query], int, frozenset[str]]] = {}
    for query in queries:
        operation, parts, numbers = query.operation, query.end - query.first, query.numbers
        group, parts_before, numbers_before = latest.get(operation) or _NO_GROUP
        is_full = max(parts_before + parts, len(group) + 1) > parts_max
        if query.is_sent_alone or is_full or not group or not numbers.isdisjoint(numbers_before):
            group, parts_before, numbers_before = [], 0, frozenset()
            groups.append(group)
        group.append(query)
        latest[operation] = group, parts_before + parts, numbers_before | numbers
    return groups


def _query(root: Root, criteria: dict[str, Any], start: int, end: int) -> Query:
    given = {name: value for name, value in criteria.items() if value is not None and (value != "" or name == "q")}
    # A digest: a client may have put its API key into what it searches for.
    digest = hashlib.blake2b(_encode(given), digest_size=16).hexdigest()
    return Query(root, given, f"{root} {digest}", start, end)
