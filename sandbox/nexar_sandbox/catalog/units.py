"""Numbers as the service displays them: SI prefixes, units, plain decimals; and fixed exchange rates of currencies.

Used for the specs of parts and for the search index. Temperatures are not converted: the catalog has them in °C, as the
service displays them.
"""

import math
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

# Units that are never scaled: nobody writes "1 m%" or "85 k°C".
_PLAIN = frozenset({"", "%", "°", "°C", "dB", "dBm", "in", "bit", "AWG", "ppm/°C", "g", "kg", "lm", "rpm"})
_PREFIXES = (
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
)


class DisplayedNumber(NamedTuple):
    """A number as displayed: `value` is the bare number, `units` the symbol with its prefix, `display` both."""

    value: str
    units: str
    display: str


def displayed(number: float, symbol: str) -> DisplayedNumber:
    """`number` in SI base units under the prefix that leaves one to three digits before the point.

    1e-7 F is "100 nF", 4700 Ω is "4.7 kΩ", -65 °C stays "-65 °C", a number without units is bare.
    """
    if symbol == "kg":
        number, symbol = number * 1000, "g"
    size, prefix = _prefix(number) if symbol not in _PLAIN else (1.0, "")
    value = plain(float(f"{number / size:.6g}"))
    return DisplayedNumber(value, prefix + symbol, f"{value} {prefix}{symbol}".rstrip())


def _prefix(number: float) -> tuple[float, str]:
    size = abs(number)
    # Tolerance, so that 9.999999e-7 (a rounding of 1 µ) does not become "1000 n".
    fits = (pair for pair in _PREFIXES if size * (1 + 1e-9) >= pair[0])
    return (1.0, "") if size == 0 else next(fits, _PREFIXES[-1])


def plain(number: float) -> str:
    """The number as a decimal without exponent: 1e-7 is "0.0000001"."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return format(Decimal(repr(number)), "f")


PER_DOLLAR: dict[str, float] = tomllib.loads((Path(__file__).parent / "data/currencies.toml").read_text("utf-8"))
"""Units of the currency for one US dollar, the same on every run."""


def exchange_rate(source: str, target: str) -> float | None:
    """Units of `target` for one unit of `source`; None if either currency ("" too) is unknown."""
    have, want = PER_DOLLAR.get(source), PER_DOLLAR.get(target)
    return None if have is None or want is None else want / have
