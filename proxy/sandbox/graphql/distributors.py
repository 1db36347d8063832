"""What `distributorApi`, `distributorApiTimeout` and `customPricingCredentials` do (contract graphql.md §1.1).

Sellers with an interface of their own can be asked for live data. Nobody is asked here: live offers are of this
moment, and for somebody with credentials a little cheaper. How long a seller would take, and how much cheaper it
would be, is made up. Used by the resolvers of offers; limits.py checks the timeout.
"""

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from proxy.sandbox.catalog import matching, records

# The share of the list price that a customer pays.
CUSTOMER = 0.95
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
# How credentials may be given, beside the name of the interface.
_SECRETS = ("clientSecret", "password", "apiKey")


class LiveDataRequest(NamedTuple):
    """How long a request waits for live data, in seconds, the moment it came (RFC 3339), and the ids of the sellers
    whose customer it is."""

    timeout: float
    moment: str
    customer_of: tuple[str, ...] = ()


def parse_duration(duration: str) -> float:
    """Such as 3s, 500ms or 1m30s. Raises ValueError for what is none."""
    pieces = _PIECE.findall(duration)
    if not pieces or "".join(map("".join, pieces)) != duration:
        raise ValueError(f"distributorApiTimeout {duration!r} is no duration such as 3s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)


def live_data_request(
    arguments: Mapping[str, Any], sellers: Iterable[records.Company], now: float
) -> LiveDataRequest | None:
    """What the arguments of a query ask of the sellers; None for nothing. `now` in seconds since 1970. Raises
    ValueError for credentials of an interface that nobody has."""
    given = arguments.get("customPricingCredentials") or ()
    with_interface = [one for one in sellers if one.is_distributor_api]
    customers = [(_seller(one["apiName"], with_interface), one) for one in given]
    if not arguments.get("distributorApi"):
        return None
    moment = datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    customer_of = tuple(id_ for id_, one in customers if any(one.get(secret) for secret in _SECRETS))
    return LiveDataRequest(parse_duration(arguments["distributorApiTimeout"]), moment, customer_of)


def response_seconds(company: records.Company) -> float:
    """Seconds that the seller's interface takes: a tenth to one."""
    return (1 + int(company.id) % 10) / 10


def is_customer(company: records.Company, live: LiveDataRequest | None) -> bool:
    """Whether the seller answers in time, and to a customer."""
    return _answers(company, live) and live is not None and company.id in live.customer_of


def live_offer(offer: records.Offer, company: records.Company, live: LiveDataRequest | None) -> records.Offer:
    """The offer as the seller's interface has it; as the catalog has it where that does not answer in time."""
    if live is None or not _answers(company, live):
        return offer
    prices = offer.prices
    if is_customer(company, live):
        prices = tuple(replace(one, price=max(round(one.price * CUSTOMER, 5), 0.00001)) for one in prices)
    return replace(offer, updated=live.moment, prices=prices)


def _answers(company: records.Company, live: LiveDataRequest | None) -> bool:
    return live is not None and company.is_distributor_api and response_seconds(company) <= live.timeout


def _seller(name: str, sellers: Iterable[records.Company]) -> str:
    wanted = matching.normalise(name)
    for one in sellers:
        if wanted and wanted in map(matching.normalise, (one.name, *one.aliases, one.slug.rpartition("/")[2])):
            return one.id
    raise ValueError(f"customPricingCredentials: there is no API {name!r}")
