"""Goals of measured figures, and result rows with their outcome. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Outcome = Literal["met", "missed", "not measured", ""]


@dataclass(frozen=True)
class Goal:
    """`bound` is a number, or the name of the row whose figure is the bound."""

    relation: Literal["≤", "≥"]
    bound: float | str

    def outcome(self, figure: float, figures: Mapping[str, float]) -> Outcome:
        """Compare the unrounded figure with the bound; nan is a figure that was not measured."""
        bound = figures.get(self.bound, math.nan) if isinstance(self.bound, str) else self.bound
        if math.isnan(figure) or math.isnan(bound):
            return "not measured"
        return "met" if (figure <= bound if self.relation == "≤" else figure >= bound) else "missed"

    def __str__(self) -> str:
        return f"{self.relation} {self.bound if isinstance(self.bound, str) else f'{self.bound:.2f}'}"


class Row(NamedTuple):
    """Result row as printed and written. `outcome` is empty without a goal."""

    what: str
    figure: str
    goal: str
    outcome: Outcome

    @property
    def failed(self) -> bool:
        """True if the goal is missed or was not measured."""
        return self.outcome in ("missed", "not measured")


def rows(figures: Mapping[str, float], goals: Mapping[str, Goal]) -> list[Row]:
    """Return a row for every figure, and for every goal without one."""
    return [_row(name, figures.get(name, math.nan), goals.get(name), figures) for name in {**figures, **goals}]


def table(result_rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| what | figure | goal | outcome |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in result_rows),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, figure: float, goal: Goal | None, figures: Mapping[str, float]) -> Row:
    text = "" if math.isnan(figure) else f"{figure:.2f}".removesuffix(".00")
    return Row(name, text, str(goal or ""), goal.outcome(figure, figures) if goal else "")
