"""Product families whose part numbers follow a formula: every value of a series, as the makers number them.

Used by loader.py to fill the catalog up to any size. The formulas are those of the makers' ordering guides, so the
numbers are realistic, but not every one of them is sold.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from nexar_sandbox.catalog import units

SpecValues = dict[str, float | str]


class PartDraft(NamedTuple):
    """One part of a family: its MPN, its description, its specs by shortname."""

    mpn: str
    description: str
    specs: SpecValues


@dataclass(frozen=True, slots=True)
class PartFamily:
    """A maker's series. `branch` is the category by names from below the root."""

    maker: str
    series: str
    branch: tuple[str, ...]
    drafts: Callable[[], Iterator[PartDraft]]


class _Chip(NamedTuple):
    """A chip size: imperial code, length and width in m, power in W, working voltage in V."""

    code: str
    length: float
    width: float
    power: float
    volts: float


_CHIPS = (
    _Chip("0402", 1.0e-3, 0.5e-3, 0.063, 50),
    _Chip("0603", 1.6e-3, 0.8e-3, 0.1, 75),
    _Chip("0805", 2.0e-3, 1.25e-3, 0.125, 150),
    _Chip("1206", 3.2e-3, 1.6e-3, 0.25, 200),
    _Chip("1210", 3.2e-3, 2.6e-3, 0.5, 200),
    _Chip("2512", 6.3e-3, 3.1e-3, 1.0, 200),
)
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


def yageo_rc() -> Iterator[PartDraft]:
    """RC0603FR-0710KL: size, tolerance, reel, value."""
    for chip, (letter, percent, series) in product(_CHIPS, (("F", 1.0, fine(96)), ("J", 5.0, _E24))):
        for mantissa, exponent in _ohms(series, range(-1, 5)):
            mpn = f"RC{chip.code}{letter}R-07{_short_letters(mantissa, exponent)}L"
            yield _resistor(mpn, chip, mantissa * 10.0**exponent, percent, "Thick Film")


def vishay_crcw() -> Iterator[PartDraft]:
    """CRCW060310K0FKEA: size, value, tolerance, temperature coefficient, packaging."""
    for chip, (letter, percent, series), reel in product(
        _CHIPS, (("FK", 1.0, fine(96)), ("JN", 5.0, _E24)), ("EA", "EB", "EC")
    ):
        for mantissa, exponent in _ohms(series, range(-1, 5)):
            mpn = f"CRCW{chip.code}{_letters(mantissa, exponent)}{letter}{reel}"
            yield _resistor(mpn, chip, mantissa * 10.0**exponent, percent, "Thick Film")


def vishay_tnpw() -> Iterator[PartDraft]:
    """TNPW060310K0BEEA: as CRCW, thin film, in the 192 values of a decade."""
    for chip, (letter, percent), drift in product(_CHIPS, (("B", 0.1), ("D", 0.5), ("F", 1.0)), "EHY"):
        for mantissa, exponent in _ohms(fine(192), range(-1, 4)):
            mpn = f"TNPW{chip.code}{_letters(mantissa, exponent)}{letter}{drift}EA"
            yield _resistor(mpn, chip, mantissa * 10.0**exponent, percent, "Thin Film")


_VOLTS = (("8", 10.0), ("4", 16.0), ("3", 25.0), ("5", 50.0), ("1", 100.0), ("2", 200.0))
_PERCENTS = {"J": 5.0, "K": 10.0, "M": 20.0}


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


def kemet_c() -> Iterator[PartDraft]:
    """C0603C104K5RACTU: size, value, tolerance, voltage, dielectric, packaging."""
    kinds = (("R", "X7R"), ("P", "X5R"), ("G", "C0G"))
    for reel, chip, (volt, volts), (letter, percent), (kind, name) in product(
        ("CTU", "C7867", "C7411", "UTO"), _CHIPS, _VOLTS, _PERCENTS.items(), kinds
    ):
        for code, farads in _picofarads():
            mpn = f"C{chip.code}C{code}{letter}{volt}{kind}A{reel}"
            yield _capacitor(mpn, chip, farads=farads, volts=volts, percent=percent, dielectric=name)


def murata_grm() -> Iterator[PartDraft]:
    """GRM188R71H104KA01D: size, dielectric, voltage, value, tolerance."""
    # There is no 2512 in this series.
    sizes = dict(zip(("155", "188", "21B", "31M", "32E"), _CHIPS, strict=False))
    kinds = (("R7", "X7R"), ("R6", "X5R"), ("5C", "C0G"))
    volts = (("1A", 10.0), ("1C", 16.0), ("1E", 25.0), ("1H", 50.0), ("2A", 100.0))
    for (size, chip), (kind, name), (volt, rated), (letter, percent) in product(
        sizes.items(), kinds, volts, _PERCENTS.items()
    ):
        for code, farads in _picofarads():
            yield _capacitor(
                f"GRM{size}{kind}{volt}{code}{letter}A01D",
                chip,
                farads=farads,
                volts=rated,
                percent=percent,
                dielectric=name,
            )


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


_RESISTORS = ("Passive Components", "Resistors", "Chip SMD Resistors")
_CAPACITORS = ("Passive Components", "Capacitors", "Ceramic Capacitors")

FAMILIES: tuple[PartFamily, ...] = (
    PartFamily("Yageo", "RC", _RESISTORS, yageo_rc),
    PartFamily("KEMET", "C", _CAPACITORS, kemet_c),
    PartFamily("Samtec", "TSW", ("Connectors", "Headers and Wire Housings"), samtec_tsw),
    PartFamily("onsemi", "BZX84C", ("Discrete Semiconductors", "Diodes", "Zener Diodes"), onsemi_bzx84),
    PartFamily("Vishay", "CRCW", _RESISTORS, vishay_crcw),
    PartFamily("Murata", "GRM", _CAPACITORS, murata_grm),
    PartFamily("Vishay", "TNPW", _RESISTORS, vishay_tnpw),
)
