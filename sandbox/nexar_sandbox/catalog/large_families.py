"""Large product families, which fill a catalog of a million parts.

Used by loader.py together with families.py. The formulas are those of the makers' ordering guides; here every value
is made that can be ordered, in all tolerances, ratings and packagings, and not every one of them is in stock anywhere.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from nexar_sandbox.catalog import units
from nexar_sandbox.catalog.families import COMMON, PartDraft, PartFamily, SpecValues, fine

_LEADED = {**COMMON, "mount": "Through Hole"}
_AXIAL_TOLERANCES = (("B", 0.1), ("C", 0.25), ("D", 0.5), ("F", 1.0))


def _four_digits(mantissa: int, exponent: int) -> str:
    """Three digits and the number of zeros, R for the point: (499, 1) is 4991, (499, -1) is 49R9."""
    return f"{mantissa}{exponent}" if exponent >= 0 else f"{mantissa // 10}R{mantissa % 10}"


def _precise(ohms: float, percent: float, watts: float, ppm: float, others: Mapping[str, float | str]) -> SpecValues:
    """The specs of a resistor with a temperature coefficient, in ppm/K, and its other specs."""
    return {
        "resistance": ohms,
        "tolerance": percent,
        "powerrating": watts,
        "temperaturecoefficient": ppm,
        **others,
    }


def vishay_cmf() -> Iterator[PartDraft]:
    """CMF5510K000FKEB: size, value, tolerance, temperature coefficient, packaging."""
    sizes = (("50", 0.25), ("55", 0.5), ("60", 1.0), ("65", 1.5))
    drifts = (("H", 50.0), ("K", 100.0), ("N", 10.0))
    decades = ((-1, "R"), (0, "R"), (1, "K"), (2, "K"), (3, "K"))
    for reel, (size, watts), (drift, ppm), (letter, percent) in product(
        ("EA", "EB", "EK", "RE"), sizes, drifts, _AXIAL_TOLERANCES
    ):
        for (exponent, point), mantissa in product(decades, fine(192)):
            ohms = float(f"{mantissa * 10.0**exponent:.4g}")
            kilohms, remainder = divmod(round(ohms * 10_000 if point == "R" else ohms * 10), 10_000)
            digits = f"{kilohms}{point}{remainder:04}"[:6]
            specs = _precise(ohms, percent, watts, ppm, {"composition": "Metal Film", **_LEADED})
            display = units.displayed(ohms, "Ω").display
            text = f"Axial metal film resistor, {display}, {percent:g} %, {watts:g} W, {ppm:g} ppm/°C"
            yield PartDraft(f"CMF{size}{digits}{letter}{drift}{reel}", text, specs)


def ohmite_rn() -> Iterator[PartDraft]:
    """RN55D4991FB14: size, characteristic, value, tolerance, packaging."""
    sizes = (("50", 0.05), ("55", 0.125), ("60", 0.25), ("65", 0.5), ("70", 0.75))
    kinds = (("C", 50.0), ("D", 100.0), ("E", 25.0))
    for reel, (size, watts), (kind, ppm), (letter, percent) in product(
        ("B14", "R36", "RE6", "BSL"), sizes, kinds, _AXIAL_TOLERANCES
    ):
        for exponent, mantissa in product(range(-1, 5), fine(192)):
            ohms = float(f"{mantissa * 10.0**exponent:.4g}")
            specs = _precise(
                ohms, percent, watts, ppm, {"militarystandard": "MIL-R-10509", "composition": "Metal Film", **_LEADED}
            )
            display = units.displayed(ohms, "Ω").display
            text = f"Military metal film resistor, {display}, {percent:g} %, {watts:g} W, axial"
            yield PartDraft(f"RN{size}{kind}{_four_digits(mantissa, exponent)}{letter}{reel}", text, specs)


def susumu_rg() -> Iterator[PartDraft]:
    """RG2012P-1002-B-T5: size, temperature coefficient, value, tolerance, reel."""
    sizes = (("1005", "0402", 0.063), ("1608", "0603", 0.1), ("2012", "0805", 0.125), ("3216", "1206", 0.25),
             ("3225", "1210", 0.5))  # fmt: skip
    drifts = (("N", 10.0), ("P", 25.0), ("V", 5.0))
    percents = (("W", 0.05), ("B", 0.1), ("C", 0.25), ("D", 0.5))
    for reel, (size, case, watts), (drift, ppm), (letter, percent) in product(
        ("T1", "T5", "T10"), sizes, drifts, percents
    ):
        for exponent, mantissa in product(range(-1, 4), fine(192)):
            ohms = float(f"{mantissa * 10.0**exponent:.4g}")
            specs = _precise(ohms, percent, watts, ppm, {"case_package": case, "composition": "Thin Film", **COMMON})
            text = f"Precision thin film chip resistor, {units.displayed(ohms, 'Ω').display}, {percent:g} %, {case}"
            yield PartDraft(f"RG{size}{drift}-{_four_digits(mantissa, exponent)}-{letter}-{reel}", text, specs)


def tdk_c() -> Iterator[PartDraft]:
    """C1608X7R1H104K080AA: size, dielectric, voltage, value, tolerance, thickness, packaging."""
    sizes = (("1005", "050"), ("1608", "080"), ("2012", "125"), ("3216", "160"), ("3225", "230"))
    volts = (("1C", 16.0), ("1E", 25.0), ("1V", 35.0), ("1H", 50.0), ("2A", 100.0))
    tenths = (10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82)
    percents = (("J", 5.0), ("K", 10.0), ("M", 20.0))
    for reel, (size, thickness), dielectric, (volt, rated), (letter, percent) in product(
        ("AA", "AB", "AC"), sizes, ("C0G", "X5R", "X7R"), volts, percents
    ):
        for zeros, digits in product(range(1, 7), tenths):
            farads = float(f"{digits * 10.0**zeros * 1e-12:.3g}")
            specs: SpecValues = {
                "capacitance": farads,
                "voltagerating": rated,
                "tolerance": percent,
                "dielectric": dielectric,
                **COMMON,
            }
            text = f"Commercial grade MLCC, {units.displayed(farads, 'F').display}, {rated:g} V, {dielectric}, {size}"
            mpn = f"C{size}{dielectric}{volt}{digits}{zeros}{letter}{thickness}{reel}"
            yield PartDraft(mpn, text, specs)


def sitime_sit8008() -> Iterator[PartDraft]:
    """SiT8008BI-13-33E-25.000000: temperature range, package, stability, voltage, control, frequency."""
    ranges = (("BI", -40.0, 85.0), ("BC", -20.0, 70.0))
    packages = (("1", "SMD 2.5 x 2.0"), ("2", "SMD 3.2 x 2.5"), ("3", "SMD 5.0 x 3.2"), ("8", "SMD 7.0 x 5.0"))
    volts = (("18", 1.8), ("25", 2.5), ("28", 2.8), ("30", 3.0), ("33", 3.3))
    for (heat, low, high), (size, case), stability, (volt, supply), control in product(
        ranges, packages, "123", volts, "ES"
    ):
        for halves in range(2, 221):
            megahertz = halves / 2
            specs: SpecValues = {
                "frequency": megahertz * 1e6,
                "operatingsupplyvoltage": supply,
                "minoperatingtemperature": low,
                "maxoperatingtemperature": high,
                "case_package": case,
                **COMMON,
                "numberofterminals": 4.0,
            }
            text = f"MEMS oscillator, {megahertz:g} MHz, {supply:g} V, {case}"
            yield PartDraft(f"SiT8008{heat}-{size}{stability}-{volt}{control}-{megahertz:.6f}", text, specs)


def avx_mlcc() -> Iterator[PartDraft]:
    """06035C104KAT2A: size, voltage, dielectric, value, tolerance, failure rate, terminals, packaging."""
    volts = (("Y", 16.0), ("3", 25.0), ("5", 50.0), ("1", 100.0), ("2", 200.0))
    kinds = (("A", "C0G"), ("C", "X7R"), ("D", "X5R"))
    percents = (("J", 5.0), ("K", 10.0), ("M", 20.0))
    values = [(digits, zeros) for zeros in range(1, 6) for digits in range(10, 100)]
    for reel, size, (volt, rated), (kind, dielectric), (letter, percent) in product(
        ("2A", "4A"), ("0402", "0603", "0805", "1206", "1210"), volts, kinds, percents
    ):
        for digits, zeros in values:
            if digits % 3 and digits % 5:
                continue
            farads = float(f"{digits * 10.0**zeros * 1e-12:.3g}")
            specs: SpecValues = {
                "capacitance": farads,
                "voltagerating": rated,
                "tolerance": percent,
                "dielectric": dielectric,
                "case_package": size,
                **COMMON,
            }
            text = f"Ceramic capacitor, {units.displayed(farads, 'F').display}, {rated:g} V, {dielectric}, {size}"
            yield PartDraft(f"{size}{volt}{kind}{digits}{zeros}{letter}AT{reel}", text, specs)


def amphenol_38999() -> Iterator[PartDraft]:
    """D38999/26WB35SN: kind of shell, finish, shell size, arrangement, contacts, keying."""
    kinds = (("20", "Wall mount receptacle"), ("24", "Jam nut receptacle"), ("26", "Straight plug"))
    finishes = {"F": "Nickel", "W": "Cadmium", "Z": "Zinc Nickel", "J": "Olive Drab"}
    shells = ("A", "B", "C", "D", "E", "F", "G", "H", "J")
    for (kind, form), (finish, plating), shell, sex, keying in product(kinds, finishes.items(), shells, "PS", "NABCDE"):
        for arrangement in range(2, 100, 3):
            specs: SpecValues = {
                "numberofcontacts": float(arrangement),
                "gender": "Male" if sex == "P" else "Female",
                "contactplating": plating,
                "mount": "Panel",
                "militarystandard": "MIL-DTL-38999",
                "lifecyclestatus": "Production",
                "rohs": "Compliant" if finish in "FZ" else "Non-Compliant",
            }
            text = f"{form}, circular, {arrangement} contacts, {plating.lower()} finish, keying {keying}"
            yield PartDraft(f"D38999/{kind}{finish}{shell}{arrangement}{sex}{keying}", text, specs)


_AXIAL = ("Passive Components", "Resistors", "Through Hole Resistors")

FAMILIES: tuple[PartFamily, ...] = (
    PartFamily("Vishay", "CMF", _AXIAL, vishay_cmf),
    PartFamily("Ohmite", "RN", _AXIAL, ohmite_rn),
    PartFamily("Susumu", "RG", ("Passive Components", "Resistors", "Chip SMD Resistors"), susumu_rg),
    PartFamily("SiTime", "SiT8008", ("Frequency Control", "Oscillators"), sitime_sit8008),
    PartFamily("AVX", "MLCC", ("Passive Components", "Capacitors", "Ceramic Capacitors"), avx_mlcc),
    PartFamily("TDK", "C", ("Passive Components", "Capacitors", "Ceramic Capacitors"), tdk_c),
    PartFamily("Amphenol", "D38999", ("Connectors", "Circular Connectors"), amphenol_38999),
)
