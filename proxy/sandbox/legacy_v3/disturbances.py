"""What makes comparisons with the old v3 service hard, declared: each kind and its figures. Nothing acts here.

Everything is drawn from the sandbox's seed. What drifts is drawn anew in every period of the clock, what flaps and
fails at every request; which parts are there and how offers are ordered stays the same.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from proxy.sandbox import declaration_syntax

# The text of a Meta says what a figure accepts: error messages and docs/reference/sandbox.md are made of it.
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share, from 0 to 1")]
Percent: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=90, description="per cent, above 0 and up to 90")]
Period: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=86_400, description="seconds, 0 to 86400; 0: each request")]
Wait: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=600_000, description="milliseconds, 1 to 600000")]


class Disturbance(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """Strikes a `share` of what it is about."""

    share: Share = 1.0


class PriceDrift(Disturbance, frozen=True, tag="price-drift"):
    """In every period of `seconds` a share of the offers has prices up to `percent` higher or lower."""

    share: Share = 0.2
    percent: Percent = 5.0
    seconds: Period = 60


class StockDrift(Disturbance, frozen=True, tag="stock-drift"):
    """In every period of `seconds` a share of the offers has up to `percent` fewer or more pieces in stock."""

    share: Share = 0.2
    percent: Percent = 20.0
    seconds: Period = 60


class Flapping(Disturbance, frozen=True, tag="flapping"):
    """A field of parts is empty in a share of the places where it is shown, others at every request."""

    share: Share = 0.5
    field: Annotated[str, msgspec.Meta(pattern=r"^\w+(\.\w+)*$", description="a field of parts, such as mpn")] = (
        "offers.packaging"
    )


class ReorderedOffers(Disturbance, frozen=True, tag="reordered-offers"):
    """A share of the parts lists its offers in no order."""


class FewerParts(Disturbance, frozen=True, tag="fewer-parts"):
    """A share of the parts is not known here."""

    share: Share = 0.1


class MoreParts(Disturbance, frozen=True, tag="more-parts"):
    """A share of the parts has a twin of the same number, of a maker that only the old service knows."""

    share: Share = 0.1


class Slowness(Disturbance, frozen=True, tag="slowness"):
    """A share of the replies is sent `ms` milliseconds late."""

    ms: Wait = 200


class Errors(Disturbance, frozen=True, tag="errors"):
    """A share of the requests fails: with a gateway's page in HTML, or in the service's own words in JSON."""

    share: Share = 0.1
    status: Annotated[Literal[500, 502, 503], msgspec.Meta(description="500, 502 or 503")] = 503
    body: Annotated[Literal["html", "json"], msgspec.Meta(description="html or json")] = "html"


KINDS: declaration_syntax.DeclarationParser[Disturbance] = declaration_syntax.DeclarationParser(
    "disturbance",
    (PriceDrift, StockDrift, Flapping, ReorderedOffers, FewerParts, MoreParts, Slowness, Errors),
)
