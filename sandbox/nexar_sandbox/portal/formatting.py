"""Usage, dates and numbers as the portal shows them."""

import datetime
from dataclasses import dataclass

from nexar_sandbox import applications, part_usage, plans


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """An application's usage and limit of this month, and usage of earlier months. `features`: display names."""

    used: int
    limit: int
    month: str
    plan: str
    features: tuple[str, ...]
    history: tuple[tuple[str, int], ...]

    @property
    def left(self) -> int:
        """Parts remaining; 0 if the last request exceeded the limit."""
        return max(self.limit - self.used, 0)


def usage_summary(application: applications.SandboxApplication, usage: part_usage.PartUsage) -> UsageSummary | None:
    """None for an application without the supply domain."""
    if applications.SUPPLY_SCOPE not in application.scopes:
        return None
    id_, plan = application.application_id, plans.plan_of(application)
    return UsageSummary(
        usage.used(id_),
        usage.limit(application),
        usage.month,
        plan.name if plan else "Custom plan",
        tuple(name for feature, name in plans.NAMES.items() if feature in application.features),
        tuple(usage.history(id_)),
    )


def format_date(seconds: float | None) -> str:
    """A time as a date; None: `initially`."""
    if seconds is None:
        return "initially"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")


def format_number(number: int) -> str:
    """With a narrow space between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
