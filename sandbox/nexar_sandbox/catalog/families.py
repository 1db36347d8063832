"""Product families whose part numbers follow a formula: every value of a series, as the makers number them.

Used by loader.py to fill the catalog up to any size. Families and formulas are in data/families.toml: those of the
makers' ordering guides, so the numbers are realistic, but not every one of them is sold.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nexar_sandbox.catalog import units

SpecValues = dict[str, float | str]


class PartDraft(NamedTuple):
    """One part of a family: its MPN, its description, its specs by shortname."""

    mpn: str
    description: str
    specs: SpecValues


class _Chip(NamedTuple):
    code: str
    length: float
    width: float
    power: float
    volts: float


class PartFamily(msgspec.Struct, frozen=True):
    """A maker's series. `branch` is the category by names from below the root. With `decades` it is one of resistors,
    with `axes` of capacitors; the others have a function of their own."""

    maker: str
    series: str
    branch: tuple[str, ...]
    number: str = ""
    film: str = ""
    decades: tuple[int, ...] = ()
    tolerances: tuple[tuple[str, float, int], ...] = ()
    ends: tuple[str, ...] = ("",)
    axes: dict[str, tuple[Any, ...]] = {}

    def drafts(self) -> Iterator[PartDraft]:
        if self.decades:
            return _resistors(self)
        return _capacitors(self) if self.axes else _OTHERS[self.series]()


class _Table(msgspec.Struct, frozen=True):
    chips: tuple[_Chip, ...]
    families: tuple[PartFamily, ...]


_TABLE = msgspec.toml.decode((Path(__file__).parent / "data/families.toml").read_bytes(), type=_Table)
FAMILIES = _TABLE.families
_E12 = (100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820)
_E24 = tuple(sorted((*_E12, 110, 130, 160, 200, 240, 300, 360, 430, 510, 620, 750, 910)))


def fine(steps: int) -> tuple[int, ...]:
    """The E48 and finer series of IEC 60063, three digits: they follow the formula but for 920 in E192."""
    values = (round(100 * 10 ** (step / steps)) for step in range(steps))
    return tuple(920 if value == 919 else value for value in values)


def _ohms(series: tuple[int, ...], decades: range) -> Iterator[tuple[int, int]]:
    """Three-digit mantissas with their exponents: (499, 1) is 4 990 Ω."""
    return ((mantissa, exponent) for exponent in decades for mantissa in series)


def _letters(mantissa: int, exponent: int) -> str:
    """The value with R, K or M as its point and all three digits: (499, 1) is "4K99", (100, 0) is "100R"."""
    group, place = divmod(exponent + 2, 3)
    digits = str(mantissa)
    return f"{digits[: place + 1]}{'RKM'[group]}{digits[place + 1 :]}"


def _short_letters(mantissa: int, exponent: int) -> str:
    """As `_letters`, without trailing zeros: (470, 1) is "4K7", (100, 2) is "10K"."""
    integer_digits, letter, decimals = (text := _letters(mantissa, exponent)).partition(
        next(c for c in text if c.isalpha())
    )
    return integer_digits + letter + decimals.rstrip("0")


def _resistors(family: PartFamily) -> Iterator[PartDraft]:
    for chip, (letter, percent, steps), end in product(_TABLE.chips, family.tolerances, family.ends):
        for mantissa, exponent in _ohms(_E24 if steps == 24 else fine(steps), range(*family.decades)):
            value, short = _letters(mantissa, exponent), _short_letters(mantissa, exponent)
            mpn = family.number.format(size=chip.code, letter=letter, end=end, value=value, short=short)
            yield _resistor(mpn, chip, mantissa * 10.0**exponent, percent, family.film)


def _capacitors(family: PartFamily) -> Iterator[PartDraft]:
    for values in product(*family.axes.values()):
        chosen = dict(zip(family.axes, values, strict=True))
        size, chip = chosen["size"]
        (volt, volts), (letter, percent), (kind, dielectric) = (chosen[name] for name in ("volt", "letter", "kind"))
        for code, farads in _picofarads():
            mpn = family.number.format(
                size=size, volt=volt, letter=letter, kind=kind, code=code, end=chosen.get("end", "")
            )
            yield _capacitor(
                mpn, _TABLE.chips[chip], farads=farads, volts=volts, percent=percent, dielectric=dielectric
            )


def _resistor(mpn: str, chip: _Chip, ohms: float, percent: float, film: str) -> PartDraft:
    ohms = float(f"{ohms:.4g}")
    display = units.displayed(ohms, "Ω").display
    text = f"{film} chip resistor, {display}, {percent:g} %, {chip.power:g} W, {chip.code}"
    specs: SpecValues = {
        "resistance": ohms,
        "tolerance": percent,
        "powerrating": chip.power,
        "voltagerating": chip.volts,
        "case_package": chip.code,
        "composition": film,
        **COMMON,
    }
    return PartDraft(mpn, text, specs)


COMMON: Mapping[str, float | str] = {
    "mount": "Surface Mount",
    "numberofterminals": 2.0,
    "lifecyclestatus": "Production",
    "rohs": "Compliant",
}


def _picofarads() -> Iterator[tuple[str, float]]:
    """The E12 values from 10 pF to 8.2 µF as (two digits and a count of zeros, farads)."""
    return ((f"{value // 10}{zeros}", value / 10 * 10**zeros * 1e-12) for zeros in range(6) for value in _E12)


def _capacitor(mpn: str, chip: _Chip, *, farads: float, volts: float, percent: float, dielectric: str) -> PartDraft:
    farads = float(f"{farads:.3g}")
    display = units.displayed(farads, "F").display
    text = f"Multilayer ceramic capacitor, {display}, {volts:g} V, {percent:g} %, {dielectric}, {chip.code}"
    specs: SpecValues = {
        "capacitance": farads,
        "voltagerating": volts,
        "tolerance": percent,
        "dielectric": dielectric,
        "case_package": chip.code,
        "length": chip.length,
        "width": chip.width,
        **COMMON,
    }
    return PartDraft(mpn, text, specs)


def samtec_tsw() -> Iterator[PartDraft]:
    """TSW-110-07-G-D: positions a row, lead style, plating, rows."""
    leads = ("05", "06", "07", "08", "14", "23", "26")
    platings = {"G": "Gold", "T": "Tin", "L": "Gold", "S": "Gold", "F": "Gold"}
    for rows, (letter, plating), lead, positions in product("SDT", platings.items(), leads, range(1, 51)):
        count = positions * (1 + "SDT".index(rows))
        specs: SpecValues = {
            "numberofcontacts": float(count),
            "numberofrows": float(1 + "SDT".index(rows)),
            "numberofpositions": float(count),
            "pitch": 2.54e-3,
            "contactplating": plating,
            "mount": "Through Hole",
            "lifecyclestatus": "Production",
            "rohs": "Compliant",
        }
        text = f"Terminal strip header, {count} positions, 2.54 mm pitch, {plating.lower()} plated"
        yield PartDraft(f"TSW-{100 + positions}-{lead}-{letter}-{rows}", text, specs)


def onsemi_bzx84() -> Iterator[PartDraft]:
    """BZX84C5V1LT1G: Zener voltage with V as its point."""
    for mantissa, exponent in _ohms(_E24, range(-2, 0)):
        volts = round(mantissa * 10.0**exponent, 1)
        # The series begins here.
        if volts < 2.4:
            continue
        name = f"{volts:.1f}".replace(".", "V") if volts < 10 else f"{volts:.0f}"
        specs: SpecValues = {
            "voltage": volts,
            "tolerance": 5.0,
            "powerdissipation": 0.225,
            "case_package": "SOT-23",
            **COMMON,
            "numberofterminals": 3.0,
        }
        yield PartDraft(f"BZX84C{name}LT1G", f"Zener diode, {volts:g} V, 5 %, 225 mW, SOT-23", specs)


_OTHERS = {"TSW": samtec_tsw, "BZX84C": onsemi_bzx84}
