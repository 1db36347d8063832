"""Queries of the core: beginnings of lists of the upstream, by the key under which a list is stored; what is to be
fetched of some as one GraphQL operation, and its data as what was fetched of each. Pure.

Dialects make queries of what their clients send, and read results by them. Two queries with the same key need the same
list, whatever dialect, projection or page they come from. Parts are fetched whole: with one selection for each set of
features, and stored as the upstream sent them.
"""

import hashlib
import re
import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proxy import errors, model
from proxy.planning import documents
from proxy.planning.documents import Documents, PartialData
from proxy.store.protocol import Hit, Result, Want

SearchRoot = Literal["supSearch", "supSearchMpn"]
Root = Literal["supMultiMatch", "supParts", "document"] | SearchRoot

REASON_MAX = 500  # characters of the upstream's messages that are passed on
HITS_MAX = 2**31 - 1  # GraphQL's Int; the store takes no number of any size

_UID = re.compile(r"[0-9a-f]{16}")
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_encode = msgspec.json.Encoder(order="deterministic").encode
_NUMBERS = ("mpn", "mpnOrSku", "sku")


class Fetch(NamedTuple):
    """Elements to be fetched of a query's list: `limit` from `start` on, behind the beginning that is `stored`."""

    query: "Query"
    stored: Result | None
    start: int
    limit: int


class Fetched(NamedTuple):
    """What the upstream returned for a Fetch: parts as it sent them, and all hits; `error` is that of the query.

    `reported` are the errors of a response with data that are about it; `returned` counts the parts, `lost` the
    elements that may have been billed and are not there. `maker` is that of the first part.
    """

    hits: int
    items: tuple[Hit, ...] = ()
    bodies: tuple[bytes, ...] = ()
    part_ids: tuple[str | None, ...] = ()
    error: str | None = None
    reported: Sequence[model.GraphQLError] = ()
    returned: int = 0
    lost: int = 0
    maker: str | None = None


class _Maker(msgspec.Struct):
    name: str


class _Identity(msgspec.Struct):
    """What a part is stored by."""

    v3uid: str
    id: str | None = None
    manufacturer: _Maker | None = None


_decode = msgspec.json.Decoder(_Identity).decode
# How a part begins, as it is selected (documents.of_parts): what follows, up to 100 kB, need not be read for this.
_BEGINNING = re.compile(rb'\{"v3uid":"([0-9a-f]{16})","id":"(\w+)","manufacturer":\{"name":"([ !#-\[\]-~]+)"[,}]')


class Received(NamedTuple):
    """Value of the root field of an operation that was passed on, and the errors beside it. `parts` are in it, and
    `lost` nulls are where parts would be."""

    value: bytes
    reported: Sequence[model.GraphQLError]
    parts: int
    lost: int


class PassedOn(NamedTuple):
    """Operation of a client that is sent as it stands, and the reader of its data, which is not stored if private."""

    operation: model.EncodedOperation
    read: Callable[[Any], Received]
    is_private: bool = False


class Query(NamedTuple):
    """Elements `start` to `end` of a list. The list is that of a root field and its arguments, which `criteria` are.

    `operation` is what all queries of an operation have in common, the root field and its options; None: no other can
    be in it. `numbers` are those that it asks for. `general` is the key of the same query without its maker. `first` is
    the element that the stored list begins with. What is `passed_on` is fetched as it stands instead.
    """

    root: Root
    criteria: dict[str, Any]
    key: str
    start: int
    end: int
    operation: str | None = None
    numbers: frozenset[str] = frozenset()
    general: str | None = None
    first: int = 0
    passed_on: PassedOn | None = None

    @property
    def want(self) -> Want:
        if self.passed_on is not None:
            return Want(self.key, 1, self.passed_on.operation.parts_max)
        if self.root != "supParts":
            return Want(self.key, self.end - self.first)
        return Want(self.key, 1, part=self.criteria["id"])

    def fetch(self, stored: Result | None = None) -> Fetch:
        """Return what is to be fetched of the list behind the beginning that is `stored`."""
        start = self.first + (stored.asked if stored else 0)
        return Fetch(self, stored, start, self.end - start)

    def key_with_maker(self, name: str) -> str | None:
        """Return the key of the query for the same number of a maker; None for one that is not for a number alone."""
        if self.root != "supMultiMatch" or self.criteria.keys() != {"mpn"} or self.first:
            return None
        return of_list(self.root, 0, 1, self.criteria | {"manufacturer": name}).key

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


def of_list(root: Root, start: int, end: int, criteria: dict[str, Any]) -> Query:
    """Make the query of a root field with these arguments. None and empty texts are left out, but for an empty `q`."""
    given = {name: value for name, value in criteria.items() if value is not None and (value != "" or name == "q")}
    # A digest: a client may have put its API key into what it searches for.
    key = f"{root} {hashlib.blake2b(_encode(given), digest_size=16).hexdigest()}"
    options = given.get("options")
    operation = None if root in ("supSearch", "supSearchMpn") else f"{root} {_encode(options)!r}" if options else root
    return Query(root, given, key, start, end, operation, frozenset(given[name] for name in _NUMBERS if name in given))


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
    query = of_list("supMultiMatch", start, end, criteria)
    if query.criteria.keys() != {"mpn", "manufacturer"}:
        return query
    return query._replace(general=of_list(query.root, 0, 1, {"mpn": query.criteria["mpn"]}).key)


def part(uid_or_id: str) -> Query:
    return of_list("supParts", 0, 1, {"id": uid_or_id})


def valid_uids(uids: Iterable[str]) -> list[str]:
    """Return the well-formed v3 uids, each once. Others are not sent: supParts accepts upstream ids, too."""
    return [uid for uid in dict.fromkeys(uids) if _UID.fullmatch(uid)]


def fitting(fetches: Sequence[Fetch], parts_max: int) -> int:
    """Return how many of these, of one root field and its options, the first operation can carry: with no number twice,
    and at most so many parts and queries."""
    parts, numbers = 0, set[str]()
    for place, fetch in enumerate(fetches):
        parts += fetch.limit
        if place and (max(parts, place + 1) > parts_max or not numbers.isdisjoint(fetch.query.numbers)):
            return place
        numbers |= fetch.query.numbers
    return len(fetches)


def grouped(queries: Iterable[Query], parts_max: int) -> list[list[Query]]:
    """Return queries in groups that one operation can carry. Searches, and what is passed on, come alone."""
    groups, together = [], dict[object, list[Query]]()
    for query in queries:
        together.setdefault(query.operation or query.key, []).append(query)
    for waiting in together.values():
        while waiting:
            number = fitting([query.fetch() for query in waiting], parts_max) if waiting[0].operation else 1
            groups.append(waiting[:number])
            del waiting[:number]
    return groups


def operation(whole: Documents, fetches: Sequence[Fetch], country: str, currency: str) -> model.EncodedOperation:
    """Return the operation for fetches of one root field and its options, with the documents of whole parts; a search
    comes alone."""
    root, market = fetches[0].query.root, {"country": country, "currency": currency}
    pages = [{**each.query.criteria, "start": each.start, "limit": each.limit} for each in fetches]
    variables: dict[str, Any]
    if root == "supMultiMatch":
        options = [page.pop("options", None) for page in pages]
        variables = {"queries": pages, **market, **({"options": options[0]} if options[0] else {})}
    elif root == "supParts":
        variables = {"ids": [each.query.criteria["id"] for each in fetches], **market}
    else:
        variables = {**pages[0], **market}
    return whole[root].operation(variables, sum(each.limit for each in fetches))


def read(fetches: Sequence[Fetch], data: Any) -> list[Fetched]:
    """Read the data of a response. Raises UpstreamUnreadable if it is not about all fetches."""
    data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
    root = fetches[0].query.root
    found = getattr(data, root)
    places: list[tuple[model.GraphQLError, Any]] = []  # of elements at which errors are; None of all
    for error in reported:
        path = error.path if isinstance(error.path, list) else []
        is_one = len(path) > 1 and path[0] == root and isinstance(path[1], int)
        places.append((error, path[1] if is_one else None))
    if root == "supMultiMatch":
        read_ = [_read(each.hits, each.parts, error=each.error) for each in found]
    elif root == "supParts":
        read_ = []
        for place, part in enumerate(found):
            reasons = dict.fromkeys(error.message for error, at in places if at == place)
            if bytes(part) != documents.NULL:
                read_.append(_read(1, [part]))
            elif reasons:
                read_.append(Fetched(0, error="; ".join(reasons)[:REASON_MAX], lost=1))
            else:  # the id is unknown
                read_.append(Fetched(0))
    else:
        results = found.results or []
        read_ = [_read(found.hits, [each.part for each in results], results)]
    if len(read_) != len(fetches):
        raise errors.UpstreamUnreadable("the upstream did not answer every query", may_be_billed=True)
    if not reported:
        return read_
    if len(read_) == 1:
        return [read_[0]._replace(reported=tuple(reported))]
    # Errors at the path of a fetch are about it, those at none about all.
    return [
        each._replace(reported=tuple(error for error, at in places if at in (place, None)))
        for place, each in enumerate(read_)
    ]


def _read(hits: int, parts: Sequence[Any], results: Sequence[Any] = (), error: str | None = None) -> Fetched:
    """Return what was fetched of a list; "" is the uid of a part that cannot be read."""
    bodies = tuple(map(bytes, parts))
    known = [_identity(body) for body in bodies]
    if results:
        items = tuple(Hit(uid, each.akaMpn, each.description) for (uid, *_), each in zip(known, results, strict=True))
    else:
        items = tuple(Hit(uid) for uid, *_ in known)
    maker, ids = known[0][2] if known else None, tuple(id for _, id, _ in known)
    total, lost = min(max(hits, 0), HITS_MAX), bodies.count(documents.NULL)
    return Fetched(total, items, bodies, ids, error, (), len(bodies) - lost, lost, maker)


def _identity(body: bytes) -> tuple[str, str | None, str | None]:
    """Return uid, id and maker of a part."""
    if beginning := _BEGINNING.match(body):
        uid, id, maker = beginning.groups()
        return uid.decode(), id.decode(), maker.decode()
    try:
        part = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", None, None
    return part.v3uid, part.id, part.manufacturer.name if part.manufacturer else None
