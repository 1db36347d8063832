"""Protocol of the store: results of queries, reservations and usage of parts, small values, and who called.

Two moments must be atomic, and each is one operation: `begin`, before an operation is sent to the upstream, and
`finish`, after it. Nothing that can be billed is sent without a reservation that `begin` has committed, and results are
committed together with their usage. An id is 128 random bits that the process makes, so that both may be sent again
when their confirmation was lost: a second time changes nothing.

Times are seconds since 1970. SQLite takes them from the clock that the store was opened with, Redis from its TIME.
Every operation raises errors.StoreUnavailable where the store cannot be used; then nothing was changed, or all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from proxy import errors
from proxy.kit.windows import Window

LIFETIME = "lifetime"  # the period of an account that never renews
EMPTY_SECONDS = 300.0  # for which a result without parts is fresh
FRESH_SECONDS, STORED_SECONDS = 84_600.0, 86_400.0  # for which a part is fresh, and is stored at all
DAY_SECONDS = 86_400
DAYS_KEPT = 400  # of usage by day, whose period is a date such as 2026-11-29; months and lifetimes are kept for ever
CLIENT, UNKNOWN_KEY, FAILURE = "client", "unknown key", "failure"  # kinds of what was seen
SEEN_MAX = {CLIENT: 0, UNKNOWN_KEY: 500, FAILURE: 50}  # rows of a kind that are kept, the newest; 0: all


class Account(NamedTuple):
    """Account in a period (`2026-11-29`, `2026-11` or `lifetime`), and the most parts that it may use there; None:
    unlimited. `account` is the digest of a client id or of an API key."""

    account: str
    period: str
    limit: int | None = None


class Selection(NamedTuple):
    """Selection set of a part: a digest of all its possible fields, and the features whose fields are among them, as
    bits. A stored part serves a selection of the same digest with no features beyond its own."""

    digest: str
    features: int

    def serves(self, wanted: "Selection") -> bool:
        return self.digest == wanted.digest and not wanted.features & ~self.features


class Want(NamedTuple):
    """Query whose result is needed: its query key, the end of the list that is needed (start + limit), and the most
    parts that one element of the list can cost.

    `uid` or `part_id`: any stored part with it serves the query, whichever result it came with.
    """

    key: str
    end: int
    parts: int = 1
    uid: str | None = None
    part_id: str | None = None


class Hit(NamedTuple):
    """Element of a result: the uid of its part, and what the search says of it (`akaMpn`, `description`)."""

    uid: str
    aka_mpn: str | None = None
    description: str | None = None


class Result(NamedTuple):
    """Beginning of the upstream's list for a query: `asked` elements were asked for, `hits` exist in all. `fetched` is
    when its oldest part was; in a Finish 0.0 means now. `details` is what else the query needs, such as facets, as the
    upstream sent it.

    `bodies` are the parts of `items` as the upstream sent them, in the same order, beside their ids.
    """

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
    """The want does not fit the limit of an account, which has so many parts left."""

    account: Account
    left: int


Outcome = Found | Busy | Reserved | Refused | errors.StoreUnavailable


class Begin(NamedTuple):
    """Reservation to be made: `wants` that are neither found nor busy, as far as they fit the limits, in their order.

    `scope` is the digest of upstream address, client id, country and currency. Only what was fetched at `fresh_from` or
    later is found, and results without parts only for EMPTY_SECONDS. After `seconds` the reservation has expired.
    """

    id: str
    scope: str
    selection: Selection
    wants: Sequence[Want]
    accounts: Sequence[Account]
    fresh_from: float
    seconds: float


class Finish(NamedTuple):
    """End of a reservation: parts that the upstream returned, parts that may have been billed, and what to store.

    `accounts` are those of the present periods. Where a period has changed since `begin`, the parts are used in the
    later period and uncertain in the earlier one. Results that could not be stored do not keep the usage from being
    booked. A part with fewer fields replaces none that is fresh. What comes after the deadline is stored only for keys
    that nobody has reserved since, and without its `begin` nothing is.
    """

    id: str
    scope: str
    selection: Selection
    results: Sequence[Result]
    accounts: Sequence[Account]
    used: int
    uncertain: int


class Usage(NamedTuple):
    """Parts of an account in a period: returned, uncertain, reserved by requests under way."""

    account: str
    period: str
    used: int
    uncertain: int
    reserved: int


class Seen(NamedTuple):
    """Requests of one kind on one day (in days since 1970, UTC) with the same values, and the time of the last one.

    CLIENT: of a program to an endpoint; application and key are empty without a valid API key; `detail` are parameters
    and fields that v3bridge had no source for. UNKNOWN_KEY: with a key that no application has, by its digest;
    `endpoint` is the client's address. FAILURE: one that failed; `detail` is what a person needs to find the reason.
    """

    kind: str
    day: int
    application: str
    key: str
    endpoint: str
    user_agent: str
    detail: str
    requests: int
    last: float


class Store(Protocol):
    """The store. `worker` is the name of the process that opened it: reservations are made in its name."""

    async def begin(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        """Reserve, in one transaction for all; return the outcome of each want. A want of no parts always fits."""

    async def quote(self, begins: Sequence[Begin]) -> list[list[Outcome]]:
        """Return what `begin` would, and change nothing. Also to wait for busy wants: read again until none is."""

    async def finish(self, finishes: Sequence[Finish]) -> None:
        """Book usage, store results and end reservations, in one transaction. May come after the deadline, twice, or
        without its `begin`."""

    async def sweep(self) -> None:
        """Move open reservations past their deadline to uncertain usage; delete what is out of date. Once a minute."""

    async def end_worker(self, worker: str) -> None:
        """Move the reservations of a process that has died to uncertain usage, at once."""

    async def usage(self) -> list[Usage]:
        """Return every account and period with usage, by both."""

    async def set_usage(self, account: Account, used: int) -> None:
        """Replace used parts and end uncertain ones, as the vendor's portal shows them; in Redis, begin a new epoch
        for the account after a loss of data."""

    async def forget(self, scope: str | None) -> int:
        """Delete the results and parts of a scope, or all; return how many parts. Raises the number of `forgotten`."""

    async def forgotten(self) -> int:
        """Return how often something was forgotten, so that memories of results are dropped with it."""

    async def value(self, key: str) -> str | None:
        """Return a small value; None where there is none or it has ended."""

    async def values(self, prefix: str) -> dict[str, str]:
        """Return the values whose keys begin with this."""

    async def put_value(self, key: str, value: str, seconds: float, *, absent: bool = False) -> bool:
        """Keep a value for so long. With `absent` only where there is none, or where the same value is there (a lease
        that its owner extends); return whether it is kept."""

    async def drop_value(self, key: str, value: str | None = None) -> None:
        """Delete a value; with `value` only if it is that one."""

    async def take(self, key: str, windows: Sequence[Window]) -> float:
        """Count a request in every window and return 0.0; or count none and return the seconds until it would be."""

    async def add_seen(self, id: str, rows: Sequence[Seen], first_day: int) -> None:
        """Add requests, once for each id, and delete what was seen on days before the first one."""

    async def seen(self, kind: str, first_day: int) -> list[Seen]:
        """Return what was seen of a kind on this day and later ones, the last one first."""

    async def check_writable(self) -> None:
        """Write to the store. Raises StoreUnavailable."""

    async def aclose(self) -> None:
        """Close connections and files, and end what is still reserved by this process."""
