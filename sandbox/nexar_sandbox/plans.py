"""Plans of applications: part limit, its period, and features. Chosen by `--plan` and in the portal.

Names, add-ons, and the part limits of all but Enterprise are those of contract graphql.md §6; Enterprise's is "as
agreed" there, so the number is the sandbox's own.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from nexar_sandbox import applications

MAX_PARTS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """`parts` a `period`, unless an application has its own limit. `add_ons` are features that may be added."""

    name: str
    parts: int
    features: frozenset[str]
    add_ons: tuple[str, ...] = ()
    period: Literal["month", "lifetime"] = "month"


_STANDARD = frozenset({"SUGGESTIONS", "SPELLING_CORRECTIONS"})
PLANS = {
    "evaluation": SandboxPlan("Evaluation", 100, applications.FEATURES, period="lifetime"),
    "standard": SandboxPlan("Standard", 2_000, _STANDARD),
    "pro": SandboxPlan(
        "Pro", 15_000, _STANDARD | {"SIMILAR_PARTS"}, ("LEAD_TIME", "TECH_SPECS", "LIFECYCLE", "DATASHEETS")
    ),
    "enterprise": SandboxPlan("Enterprise", 1_000_000, applications.FEATURES),
}


def plan_of(application: applications.SandboxApplication) -> SandboxPlan | None:
    """Return the application's plan; None: a custom limit and features."""
    return PLANS.get(application.plan or "")


def with_plan(
    application: applications.SandboxApplication, plan: str, add_ons: Collection[str] = (), parts: int | None = None
) -> applications.SandboxApplication:
    """Return the application with this plan, a key of PLANS. Usage is kept. `parts` None: the plan's limit. Raises
    ValueError for add-ons that the plan cannot have."""
    chosen = PLANS[plan]
    if add_ons and not chosen.add_ons:
        raise ValueError(f"Add-ons are for Pro; {chosen.name} has what it has.")
    for add_on in add_ons:
        if add_on not in chosen.add_ons:
            raise ValueError(f"{chosen.name} has no add-on {add_on!r}; its add-ons are {', '.join(chosen.add_ons)}.")
    if "LIFECYCLE" in add_ons and "TECH_SPECS" not in add_ons:
        raise ValueError("Lifecycle needs Tech specs.")
    return replace(
        application,
        plan=plan,
        part_limit=chosen.parts if parts is None else parts,
        period=chosen.period,
        features=chosen.features | frozenset(add_ons),
    )
