"""Operations of the upstream: from what is to be fetched of some lists to one GraphQL operation, and from its data to
what was fetched of each. Pure.

Parts are fetched whole: with one selection for each set of features, and stored as the upstream sent them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.planning import documents
from proxy.planning.documents import Document, PartialData
from proxy.planning.queries import Query
from proxy.store.protocol import Hit, Result

REASON_MAX = 500  # characters of the upstream's messages that are passed on
HITS_MAX = 2**31 - 1  # GraphQL's Int; the store takes no number of any size


class Fetch(NamedTuple):
    """What is to be fetched of a query's list: what is behind the beginning that is `stored`."""

    query: Query
    stored: Result | None

    @property
    def start(self) -> int:
        return self.query.first + (self.stored.asked if self.stored else 0)

    @property
    def limit(self) -> int:
        return self.query.end - self.query.first - (self.stored.asked if self.stored else 0)


class Fetched(NamedTuple):
    """What the upstream returned for a Fetch: parts as it sent them, and all hits; `error` is that of the query.

    `reported` are the errors of a response with data that are about it; `lost` are elements that may have been billed
    and are not there. `maker` is that of the first part.
    """

    hits: int
    items: tuple[Hit, ...] = ()
    bodies: tuple[bytes, ...] = ()
    part_ids: tuple[str | None, ...] = ()
    error: str | None = None
    reported: tuple[model.GraphQLError, ...] = ()
    lost: int = 0
    maker: str | None = None

    @property
    def returned(self) -> int:
        return len(self.bodies) - self.bodies.count(documents.NULL)


class _Maker(msgspec.Struct):
    name: str


class Identity(msgspec.Struct):
    """What a part is stored by."""

    v3uid: str
    id: str | None = None
    manufacturer: _Maker | None = None


_UNKNOWN = Identity("")
_identify = msgspec.json.Decoder(Identity).decode


class Documents:
    """Documents that fetch whole parts with one selection."""

    def __init__(self, selection: str) -> None:
        self._documents: dict[str, Document] = {
            "supMultiMatch": documents.multi_match(selection),
            "supParts": documents.parts(selection),
            "supSearch": documents.search("supSearch", selection),
            "supSearchMpn": documents.search("supSearchMpn", selection),
        }

    def operation(self, fetches: Sequence[Fetch], country: str, currency: str) -> model.EncodedOperation:
        """Return the operation for fetches of one root field and its options; a search comes alone."""
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
        return self._documents[root].operation(variables, sum(each.limit for each in fetches))


def read(fetches: Sequence[Fetch], data: Any) -> list[Fetched]:
    """Read the data of a response. Raises UpstreamUnreadable if it is not about all fetches."""
    data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
    root = fetches[0].query.root
    found = getattr(data, root)
    if root == "supMultiMatch":
        read_ = [_read(each.hits, each.parts, error=each.error) for each in found]
    elif root == "supParts":
        read_ = []
        for place, part in enumerate(found):
            reasons = dict.fromkeys(each.message for each in reported if _place(each, root) == place)
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
    # Errors at the path of a fetch are about it, those at none about all, and all are about the only one.
    places = [(error, None if len(read_) == 1 else _place(error, root)) for error in reported]
    return [
        each._replace(reported=tuple(error for error, at in places if at in (place, None)))
        for place, each in enumerate(read_)
    ]


def _read(hits: int, parts: Sequence[Any], results: Sequence[Any] = (), error: str | None = None) -> Fetched:
    bodies = tuple(map(bytes, parts))
    known = list(map(identity, bodies))
    if results:
        shown = zip(known, results, strict=True)
        items = tuple(Hit(part.v3uid, each.akaMpn, each.description) for part, each in shown)
    else:
        items = tuple(Hit(part.v3uid) for part in known)
    maker = known[0].manufacturer if known else None
    lost = bodies.count(documents.NULL)
    ids = tuple(part.id for part in known)
    return Fetched(min(max(hits, 0), HITS_MAX), items, bodies, ids, error, (), lost, maker.name if maker else None)


def identity(body: bytes) -> Identity:
    """Return what a part is stored by, as the upstream sent it; its uid is "" if it has none."""
    try:
        return _identify(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _UNKNOWN


def _place(error: model.GraphQLError, root: str) -> int | None:
    path = error.path
    if isinstance(path, list) and len(path) > 1 and path[0] == root and isinstance(path[1], int):
        return path[1]
    return None
