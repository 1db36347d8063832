"""Outcomes of lines: what is counted, the texts of the status column, and the reasons in the summary. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from proxy.tools.sheet import fill
from proxy.tools.sheet.columns.kinds import at
from proxy.tools.sheet.columns.results import ColumnResult
from proxy.tools.sheet.fill import AMBIGUOUS, FAILED, FOUND, NO_VALUE, NOT_FOUND, STALE
from proxy.tools.sheet.parts import STALE_SECONDS

NOT_FETCHED = "not fetched"
FOUND_AS_SKU = f"{FOUND}: as distributor's number"
OUTCOMES = (*fill.OUTCOMES, NOT_FETCHED)


class Status(NamedTuple):
    """Outcome of a line, the text for its status column, and the reasons that the summary counts."""

    outcome: str
    text: str
    reasons: Sequence[str] = ()

    def without(self, headings: Sequence[str]) -> "Status":
        """Return the status of a line that lacks values of these columns."""
        if self.outcome != FOUND or not headings:
            return self
        text = f"{self.text}, without {', '.join(headings)}"
        return Status(NO_VALUE, text, [f"{NO_VALUE}: {heading}" for heading in headings])


def result_status(found: ColumnResult, now: float) -> Status:
    """Return the status for a result."""
    result, part = found.result, found.part
    if result.error is not None:
        text = f"{FAILED}: {result.error}"
        return Status(FAILED, text, [text])
    if part is None:
        return Status(NOT_FOUND, NOT_FOUND, [fill.NO_PART])
    if result.hits > 1 and not result.query.manufacturer:
        missing = "manufacturer" if result.query.mpn else "part number"
        text = f"{result.hits} parts match, these values are of {part.manufacturer}: state the {missing}"
        return Status(AMBIGUOUS, f"{AMBIGUOUS}: {text}", [f"{AMBIGUOUS}: several parts match: state the {missing}"])
    return aged(result.fetched, now, as_sku=found.as_sku)


def aged(fetched: float | None, now: float, *, as_sku: bool) -> Status:
    """Return the status of values by when they were fetched; those of unknown age may be too old, too."""
    if fetched is None:
        return Status(STALE, f"{STALE}: fetched at an unknown time", [fill.OLD])
    if now - fetched <= STALE_SECONDS:
        return Status(FOUND, FOUND_AS_SKU if as_sku else FOUND)
    return Status(STALE, f"{STALE}: fetched {at(fetched)}", [fill.OLD])


def kept_status(times: Sequence[float | None], now: float, *, as_sku: bool) -> Status:
    """Return the status of a line whose values stay, by when each was fetched."""
    known = [time for time in times if time is not None]
    return aged(min(known) if len(known) == len(times) else None, now, as_sku=as_sku)
