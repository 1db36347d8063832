"""Plans of applications: monthly part limit and features. Chosen in the portal.

The names and the add-ons are the service's (contract graphql.md §6). Part limits other than
Evaluation's, and the features of Standard, are the sandbox's own choice.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from nexar_sandbox import applications

# Features of every plan.
COMMON = frozenset({"SIMILAR_PARTS", "SUGGESTIONS", "SPELLING_CORRECTIONS"})
# Add-ons of Pro, with their display names.
ADD_ONS = {
    "LEAD_TIME": "Lead time",
    "TECH_SPECS": "Tech specs",
    "LIFECYCLE": "Lifecycle",
    "DATASHEETS": "Datasheets",
}
NAMES = {
    **ADD_ONS,
    "CAD_MODELS": "CAD models",
    "SIMILAR_PARTS": "Similar parts",
    "SUGGESTIONS": "Suggestions",
    "SPELLING_CORRECTIONS": "Spelling corrections",
    "INVENTORY_HISTORY": "Inventory history",
}
MAX_PARTS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """`parts` a calendar month, unless an application has its own limit."""

    key: str
    name: str
    parts: int
    features: frozenset[str]
    has_add_ons: bool = False


PLANS = {
    plan.key: plan
    for plan in (
        SandboxPlan("evaluation", "Evaluation", 1_000, applications.FEATURES),
        SandboxPlan("standard", "Standard", 2_000, COMMON),
        SandboxPlan("pro", "Pro", 15_000, COMMON, has_add_ons=True),
        SandboxPlan("enterprise", "Enterprise", 1_000_000, applications.FEATURES),
    )
}


def plan_of(application: applications.SandboxApplication) -> SandboxPlan | None:
    """Return the application's plan; None: a custom limit and features."""
    return PLANS.get(application.plan or "")


def with_plan(
    application: applications.SandboxApplication, plan: SandboxPlan, add_ons: Collection[str], parts: int | None
) -> applications.SandboxApplication:
    """Return the application with this plan. Usage is kept. `parts` None: the plan's limit."""
    limit = plan.parts if parts is None else parts
    return replace(application, plan=plan.key, part_limit=limit, features=plan.features | frozenset(add_ons))
