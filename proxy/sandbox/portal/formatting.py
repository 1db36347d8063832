"""Numbers and days as the portal's pages show them."""

import datetime
from dataclasses import dataclass

from proxy.sandbox import applications, part_usage, plans


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """Parts of an application in this month against what it may have, and in the months before. `features` by name."""

    used: int
    limit: int
    month: str
    plan: str
    features: tuple[str, ...]
    history: tuple[tuple[str, int], ...]

    @property
    def left(self) -> int:
        """The last request may have gone over."""
        return max(self.limit - self.used, 0)


def usage_summary(application: applications.SandboxApplication, usage: part_usage.PartUsage) -> UsageSummary | None:
    """None for an application that cannot ask for parts."""
    if applications.SUPPLY_SCOPE not in application.scopes:
        return None
    id_, plan = application.application_id, plans.plan_of(application)
    return UsageSummary(
        usage.used(id_),
        usage.limit(application),
        usage.month,
        plan.name if plan else "A plan of its own",
        tuple(name for feature, name in plans.NAMES.items() if feature in application.features),
        tuple(usage.history(id_)),
    )


def format_date(seconds: float | None) -> str:
    """A moment as a day; None: with the sandbox."""
    if seconds is None:
        return "with the sandbox"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")


def format_number(number: int) -> str:
    """With a thin space between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
