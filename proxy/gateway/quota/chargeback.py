"""Chargeback: what each API key has used in a month, paid and avoided, read from the store that all workers share."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proxy import config, errors
from proxy.stores.protocols import EntryUsage, Store
from proxy.telemetry.callers import MonthlyRequests

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


class ChargebackRow(msgspec.Struct, frozen=True):
    """Usage of one API key in a month, in parts and requests. `fingerprint` is the beginning of the key's SHA-256, null
    for a key that the configuration does not have.

    `parts_paid` were returned by the upstream for this key, `uncertain` may have been billed. `avoided_by_cache` and
    `avoided_by_coalescing` are parts in its responses that were not billed: they were cached, or another request
    brought them. For `hits` of its `requests` nothing was sent upstream. These four are null in a month of which no
    request is recorded.

    `key` is null in the row of parts that an application's account has and none of its keys': those of other programs,
    and of uncertain usage that turned out to be billed, which a reconciliation has found.
    """

    month: str
    application: str
    key: str | None
    fingerprint: str | None
    requests: int | None
    hits: int | None
    parts_paid: int
    uncertain: int
    avoided_by_cache: int | None
    avoided_by_coalescing: int | None


class Chargeback(msgspec.Struct, frozen=True):
    """Usage of every API key in a month (UTC), by application. `recorded`: requests of the month are on record."""

    month: str
    recorded: bool
    rows: tuple[ChargebackRow, ...]

    @property
    def csv(self) -> str:
        """The rows as CSV (RFC 4180); what is not known is empty."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(ChargebackRow.__struct_fields__)
        writer.writerows(map(msgspec.structs.astuple, self.rows))
        return text.getvalue()


def check_month(text: str) -> str:
    """Return the name of a month. Raises BadRequest for another text."""
    if not _MONTH.fullmatch(text):
        raise errors.BadRequest(f"{text[:20]!r} is not a month; send one such as 2026-11")
    return text


async def read(store: Store, applications: Mapping[str, config.ApplicationSettings], month: str) -> Chargeback:
    """Read the usage of a month, such as 2026-11. Raises StoreUnavailable."""
    return of_month(month, applications, await store.all_usage(), await store.monthly_requests(month))


def of_month(
    month: str,
    applications: Mapping[str, config.ApplicationSettings],
    usages: Iterable[EntryUsage],
    requests: Iterable[MonthlyRequests],
) -> Chargeback:
    """Return the usage of every API key that is configured, or has any in the month: in the order of the configuration,
    then by name."""
    usage = _Usage(
        month,
        {each.entry.account: each for each in usages if each.entry.period == month},
        {(each.application, each.key): each for each in requests},
    )
    ledger = sorted(usage.ledger)
    keys: dict[str, dict[str, config.Digest | None]] = defaultdict(dict)
    for name, settings in applications.items():
        keys[name] = {key: each.key for key, each in settings.clients.items()}
    seen = [(name, key) for name, slash, key in (account.partition("/") for account in ledger) if slash]
    for name, key in (*seen, *sorted(usage.requests)):
        keys[name].setdefault(key, None)
    for account in ledger:
        keys.setdefault(account.partition("/")[0], {})
    rows: list[ChargebackRow] = []
    for name, digests in keys.items():
        own = [usage.of_key(name, key, digest) for key, digest in digests.items()]
        rows += [*own, *usage.of_others(name, own)]
    return Chargeback(month, bool(usage.requests), tuple(rows))


class _Usage(NamedTuple):
    """Usage in a month, in the ledger by account and as requests by application and key."""

    month: str
    ledger: Mapping[str, EntryUsage]
    requests: Mapping[tuple[str, str], MonthlyRequests]

    def of_key(self, application: str, key: str, digest: config.Digest | None) -> ChargebackRow:
        used, uncertain = self._parts(f"{application}/{key}")
        requests = self.requests.get((application, key))
        if requests is None and self.requests:
            requests = MonthlyRequests(self.month, application, key, 0, 0, 0, 0)
        return ChargebackRow(
            month=self.month,
            application=application,
            key=key,
            fingerprint=digest.fingerprint if digest is not None else None,
            requests=requests and requests.requests,
            hits=requests and requests.hits,
            parts_paid=used,
            uncertain=uncertain,
            avoided_by_cache=requests and requests.cached,
            avoided_by_coalescing=requests and requests.coalesced,
        )

    def of_others(self, application: str, keys: Sequence[ChargebackRow]) -> Iterator[ChargebackRow]:
        """Yield what the application's account has beyond its keys', if there is any."""
        used, uncertain = self._parts(application)
        used = max(0, used - sum(row.parts_paid for row in keys))
        uncertain = max(0, uncertain - sum(row.uncertain for row in keys))
        if used or uncertain:
            yield ChargebackRow(self.month, application, None, None, None, None, used, uncertain, None, None)

    def _parts(self, account: str) -> tuple[int, int]:
        usage = self.ledger.get(account)
        return (usage.used, usage.uncertain) if usage is not None else (0, 0)
