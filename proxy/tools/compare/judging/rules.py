"""Ignore rules of compare.yaml: known differences of a user's own services, which do not count until a day.

A rule has a path, a cause or both. The first rule that matches a difference takes it.
"""

from datetime import date
from typing import Annotated

from msgspec import Meta

from proxy.config.base import Settings as Block
from proxy.tools.compare.judging import paths
from proxy.tools.compare.judging.findings import CAUSES, Cause, Difference


class IgnoreRule(Block, frozen=True):
    """Rule to ignore differences: those at `path`, with `cause`, or both."""

    reason: Annotated[str, Meta(pattern=r"\S", description="why this may differ, in words")]
    expires: Annotated[date | None, Meta(description="the last day that it holds, such as 2027-01-31, or never")]
    path: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="a path such as results[*].items[*].mpn; * is any key, ** any number of steps"),
    ] = None
    cause: Annotated[Cause | None, Meta(description=f"one of {', '.join(CAUSES)}")] = None

    @property
    def name(self) -> str:
        """Name in reports."""
        return ", ".join(filter(None, (self.path, self.cause)))

    def matches(self, difference: Difference, cause: Cause) -> bool:
        """Return true if the rule is about the difference."""
        about = self.path is None or paths.matches(self.path, difference.path)
        return about and self.cause in (None, cause)
