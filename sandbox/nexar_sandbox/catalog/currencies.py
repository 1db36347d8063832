"""Currencies with fixed exchange rates, so that a conversion gives the same result on every run."""

import tomllib
from pathlib import Path

PER_DOLLAR: dict[str, float] = tomllib.loads((Path(__file__).parent / "data/currencies.toml").read_text("utf-8"))
"""Units of the currency for one US dollar."""


def exchange_rate(source: str, target: str) -> float | None:
    """Units of `target` for one unit of `source`; None if either currency ("" too) is unknown."""
    have, want = PER_DOLLAR.get(source), PER_DOLLAR.get(target)
    return None if have is None or want is None else want / have
