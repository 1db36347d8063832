"""Settings of compare.yaml: every key with its type, default, unit and limits. Read by loader.py.

A description completes the words "it accepts" of an error message.
"""

from datetime import date
from typing import Annotated, Literal

from msgspec import Meta

from proxy.config.base import Settings as Block
from proxy.tools.compare.judging.findings import KINDS, Kind
from proxy.tools.compare.judging.thresholds import Threshold
from proxy.tools.compare.judging.tolerances import FORMS, NORMAL_FORMS, Form, NormalForm, Tolerance
from proxy.traffic.clients import ClientKeys
from proxy.v3 import endpoints

ENDPOINTS = tuple(each.path for each in endpoints.ENDPOINTS if each.alias_of is None)

CoveredCause = Literal["no source", "derived"]
EndpointName = Annotated[str, Meta(pattern="^(" + "|".join(each.replace("{", r"\{") for each in ENDPOINTS) + r")\Z")]


class IgnoreRule(Block, frozen=True):
    """Rule to ignore differences: those at `path`, with `cause`, or both. `name` defaults to the rule's position in its
    file.
    """

    reason: Annotated[str, Meta(pattern=r"\S", description="why this may differ, in words")]
    expires: Annotated[date | None, Meta(description="the last day that it holds, such as 2027-01-31, or never")]
    path: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="a path such as results[*].items[*].mpn; * is any key, ** any number of steps"),
    ] = None
    cause: Annotated[CoveredCause | None, Meta(description="no source or derived")] = None
    endpoint: Annotated[tuple[EndpointName, ...], Meta(description=f"one of, or a list of {', '.join(ENDPOINTS)}")] = ()
    ignore: Annotated[Literal["all"] | tuple[Kind, ...], Meta(description=f"all, or a list of {', '.join(KINDS)}")] = ()
    tolerate: Annotated[Tolerance | None, Meta(description="a block with absolute, relative or seconds")] = None
    normalize: Annotated[
        tuple[NormalForm, ...], Meta(description=f"one of, or a list of {', '.join(NORMAL_FORMS)}")
    ] = ()
    varies: Annotated[bool, Meta(description="true or false")] = False
    form: Annotated[tuple[Form, ...], Meta(description=f"one of, or a list of {', '.join(FORMS)}")] = ()
    name: Annotated[Annotated[str, Meta(pattern=r"\S")] | None, Meta(description="its name in reports")] = None


class ShippedRule(IgnoreRule, frozen=True):
    """Ignore rule that ships with the program; not reported when unused."""


class ReadinessSettings(Block, frozen=True):
    """Conditions for the verdict "ready" of a client at an endpoint."""

    share: Annotated[float, Meta(gt=0, le=1, description="a share of equivalent requests, above 0 up to 1")] = 0.99
    min_requests: Annotated[int, Meta(ge=1, le=1_000_000, description="requests, 1 to 1000000")] = 100


class ComparisonSettings(Block, frozen=True):
    """All settings. `rules` holds those of the file first, then the shipped ones where these are enabled."""

    keys: Annotated[
        tuple[ClientKeys, ...], Meta(description="a list of blocks with name, source, baseline and candidate")
    ] = ()
    rules: Annotated[tuple[IgnoreRule, ...], Meta(description="a list of blocks with path, reason and expires")] = ()
    shipped_rules: Annotated[bool, Meta(description="true or false")] = True
    fail_on: Annotated[tuple[Threshold, ...], Meta(description="a list of thresholds such as missing-part")] = ()
    ready: ReadinessSettings = ReadinessSettings()
    ignored_margin: Annotated[float, Meta(ge=0, le=10, description="a share, 0 to 10")] = 0.0
    latency: Annotated[Annotated[float, Meta(ge=0, le=3600)] | None, Meta(description="seconds, 0 to 3600")] = None
    budget: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000_000_000)] | None, Meta(description="a number of parts")
    ] = None
