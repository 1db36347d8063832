"""Goals of figures, and rows that say whether they are met. Pure."""

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
        """Held to the figure itself, not to what is left of it by rounding; nan is a figure that was not measured."""
        bound = figures.get(self.bound, math.nan) if isinstance(self.bound, str) else self.bound
        if math.isnan(figure) or math.isnan(bound):
            return "not measured"
        return "met" if (figure <= bound if self.relation == "≤" else figure >= bound) else "missed"

    def __str__(self) -> str:
        return f"{self.relation} {self.bound if isinstance(self.bound, str) else f'{self.bound:.2f}'}"


class Row(NamedTuple):
    """As it is printed and written. `outcome` is empty where there is no goal."""

    what: str
    figure: str
    goal: str
    outcome: Outcome

    @property
    def failed(self) -> bool:
        """Whether a goal is missed, or cannot be said to be met."""
        return self.outcome in ("missed", "not measured")


def rows(figures: Mapping[str, float], goals: Mapping[str, Goal]) -> list[Row]:
    """Every figure, and every goal whose figure is not among them."""
    return [_row(name, figures.get(name, math.nan), goals.get(name), figures) for name in {**figures, **goals}]


def table(made: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| what | figure | goal | outcome |", "|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in made)]
    return "\n".join(lines) + "\n"


def _row(name: str, figure: float, goal: Goal | None, figures: Mapping[str, float]) -> Row:
    shown = "" if math.isnan(figure) else f"{figure:.2f}".removesuffix(".00")
    return Row(name, shown, str(goal or ""), goal.outcome(figure, figures) if goal else "")
