"""Live data of distributors: `distributorApi`, `distributorApiTimeout` and `customPricingCredentials` (contract
graphql.md §1.1).

The service can request live data from sellers with an API. Here it is simulated: live offers have the current time and,
with credentials, a lower price. Response times and discount are invented.
"""

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from nexar_sandbox.catalog import matching, records

# The share of the list price that a customer pays.
CUSTOMER_PRICE = 0.95
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
# Fields with credentials; one of them is enough.
_SECRETS = ("clientSecret", "password", "apiKey")


class LiveDataRequest(NamedTuple):
    """A request for live data: timeout in seconds, time of the request (RFC 3339), ids of the sellers with
    credentials."""

    timeout: float
    moment: str
    customer_of: tuple[str, ...] = ()


def parse_duration(duration: str) -> float:
    """Return the seconds of a duration such as 3s, 500ms or 1m30s. Raises ValueError for an invalid one."""
    pieces = _PIECE.findall(duration)
    if not pieces or "".join(map("".join, pieces)) != duration:
        raise ValueError(f"distributorApiTimeout {duration!r} is not a duration such as 3s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)


def live_data_request(
    arguments: Mapping[str, Any], sellers: Iterable[records.Company], now: float
) -> LiveDataRequest | None:
    """Return the live data request in the arguments of a query, or None. `now` in seconds since 1970. Raises
    ValueError for credentials of an unknown API."""
    credentials = arguments.get("customPricingCredentials") or ()
    with_api = [seller for seller in sellers if seller.is_distributor_api]
    customers = [(_seller(entry["apiName"], with_api), entry) for entry in credentials]
    if not arguments.get("distributorApi"):
        return None
    moment = datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    customer_of = tuple(id_ for id_, entry in customers if any(entry.get(secret) for secret in _SECRETS))
    return LiveDataRequest(parse_duration(arguments["distributorApiTimeout"]), moment, customer_of)


def response_seconds(company: records.Company) -> float:
    """Return the simulated response time of the seller's API in seconds: 0.1 to 1."""
    return (1 + int(company.id) % 10) / 10


def is_customer(company: records.Company, live: LiveDataRequest | None) -> bool:
    """Return true if the seller responds in time and the request has its credentials."""
    return _responds(company, live) and live is not None and company.id in live.customer_of


def live_offer(offer: records.Offer, company: records.Company, live: LiveDataRequest | None) -> records.Offer:
    """Return the offer from the seller's API, or from the catalog if the API does not respond in time."""
    if live is None or not _responds(company, live):
        return offer
    prices = offer.prices
    if is_customer(company, live):
        prices = tuple(
            replace(price_break, price=max(round(price_break.price * CUSTOMER_PRICE, 5), 0.00001))
            for price_break in prices
        )
    return replace(offer, updated=live.moment, prices=prices)


def _responds(company: records.Company, live: LiveDataRequest | None) -> bool:
    return live is not None and company.is_distributor_api and response_seconds(company) <= live.timeout


def _seller(name: str, sellers: Iterable[records.Company]) -> str:
    norm = matching.normalize(name)
    for seller in sellers:
        if norm and norm in map(matching.normalize, (seller.name, *seller.aliases, seller.slug.rpartition("/")[2])):
            return seller.id
    raise ValueError(f"customPricingCredentials: there is no API {name!r}")
