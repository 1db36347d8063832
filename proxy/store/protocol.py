"""Protocol of the store: what it is asked for, and what it answers.

Two moments must be atomic, and each is one operation: `begin`, before an operation is sent to the upstream, and
`finish`, after it. An id is 128 random bits that the process makes, so that both may be sent again when their
confirmation was lost: a second time changes nothing.

Times are seconds since 1970. SQLite takes them from the clock that the store was opened with, Redis from its TIME.
"""

from collections.abc import Sequence
from typing import NamedTuple

from proxy import errors

DAY_SECONDS = 86_400
LIFETIME = "lifetime"  # the period of an account that never renews
EMPTY_SECONDS = 300.0  # for which a result without parts or details is fresh
FRESH_SECONDS, STORED_SECONDS = 84_600.0, 86_400.0  # for which a part is fresh, and is stored at all
DAYS_KEPT = 400  # of usage by day; months and lifetimes are kept for ever
CLIENT_DAYS = 30  # for which it is known who called
CLIENT, UNKNOWN_KEY, FAILURE = "client", "unknown key", "failure"  # kinds of what was seen
SEEN_MAX = {UNKNOWN_KEY: 500, FAILURE: 50}  # rows of a kind that are kept, the newest


class Account(NamedTuple):
    """Digest of a client id or of an API key, in a period (`2026-11-29`, `2026-11` or `lifetime`), and the most parts
    that it may use there; None: unlimited."""

    account: str
    period: str
    limit: int | None = None


class Want(NamedTuple):
    """Query whose result is needed: its query key, the end of the list that is needed (start + limit), and the most
    parts that one element of the list can cost. Any stored part with `part` as its uid or id serves it."""

    key: str
    end: int
    parts: int = 1
    part: str | None = None


class Hit(NamedTuple):
    """Element of a result: the uid of its part, and what the search says of it."""

    uid: str
    aka_mpn: str | None = None
    description: str | None = None


class Result(NamedTuple):
    """Beginning of the upstream's list for a query: `asked` elements were asked for, `hits` exist in all. `bodies` are
    the parts of `items` as the upstream sent them, in the same order, beside their ids; `details` is the value of an
    operation that is passed on. `fetched` is when its oldest part was; in a Finish 0.0 means now."""

    key: str
    asked: int
    hits: int
    items: tuple[Hit, ...]
    bodies: tuple[bytes, ...]
    part_ids: tuple[str | None, ...] = ()
    details: bytes | None = None
    fetched: float = 0.0


class Found(NamedTuple):
    """The want is served by what is stored."""

    result: Result


class Busy(NamedTuple):
    """Another reservation is fetching the want: read again until it has ended."""


class Reserved(NamedTuple):
    """The want is reserved: fetch it. `stored` is the beginning that is there already, to be fetched from its end."""

    stored: Result | None


class Refused(NamedTuple):
    """The want does not fit the limit of an account, which has so many parts left, beside those that are reserved."""

    account: Account
    left: int
    reserved: int


Outcome = Found | Busy | Reserved | Refused | errors.StoreUnavailable


class Begin(NamedTuple):
    """Reservation to be made, for `seconds`: of a `want` that is neither found nor busy, if it fits the limits.

    `scope` is the digest of upstream address, client id, country, currency and the fields that parts can have. A stored
    part serves a begin with no `features`, as bits, beyond its own. Only what was fetched at `fresh_from` or later is
    found.
    """

    id: str
    scope: str
    features: int
    want: Want
    accounts: Sequence[Account]
    fresh_from: float
    seconds: float


class Finish(NamedTuple):
    """End of a reservation: parts that the upstream returned, parts that may have been billed, and what to store.

    `accounts` are those of the present periods. Where a period has changed since `begin`, the parts are used in the
    later period and uncertain in the earlier one. A result may answer a key that was not reserved. What comes after the
    deadline is stored only for keys that nobody has reserved since, and without its `begin` nothing is.

    `is_repeated`: it was sent before. Where its reservation is gone, it was taken.
    """

    begin: Begin
    features: int
    results: Sequence[Result]
    accounts: Sequence[Account]
    used: int
    uncertain: int
    is_repeated: bool = False


class Usage(NamedTuple):
    """Parts of an account in a period: returned, uncertain, reserved by requests under way."""

    account: str
    period: str
    used: int = 0
    uncertain: int = 0
    reserved: int = 0
