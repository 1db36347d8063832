"""The companies and boards that a sandbox begins with, in words: what seeding.py makes of them is up to the catalog.

A block becomes a sheet. Its lines say: designator, end of the path of a catalog category, how many different parts at
most, how many pieces of each at most.
"""

from typing import NamedTuple


class Line(NamedTuple):
    """Parts of one category on a sheet."""

    prefix: str
    category: str
    parts: int
    pieces: int


class Board(NamedTuple):
    """A project."""

    name: str
    description: str
    client: str
    sheets: tuple[str, ...]


class Company(NamedTuple):
    """A workspace with its people (first and last names; the first one leads) and boards."""

    name: str
    slug: str
    description: str
    region: str
    people: tuple[tuple[str, str], ...]
    boards: tuple[Board, ...]


SHEETS = {
    "Power": (
        Line("U", "/linear-voltage-regulators", 2, 1),
        Line("U", "/switching-regulators", 1, 1),
        Line("L", "/fixed-inductors", 2, 2),
        Line("D", "/schottky-diodes", 2, 2),
        Line("C", "/aluminum-electrolytic-capacitors", 3, 2),
        Line("C", "/ceramic-capacitors", 4, 5),
        Line("R", "/chip-smd-resistors", 5, 4),
        Line("F", "/fuses", 1, 1),
        Line("J", "/terminal-blocks", 1, 2),
    ),
    "Controller": (
        Line("U", "/microcontrollers", 1, 1),
        Line("U", "/flash-memory", 1, 1),
        Line("U", "/eeprom", 1, 1),
        Line("Y", "/crystals", 2, 1),
        Line("C", "/ceramic-capacitors", 8, 9),
        Line("R", "/chip-smd-resistors", 9, 6),
        Line("D", "/leds", 3, 2),
        Line("SW", "/tactile-switches", 2, 2),
        Line("J", "/headers-and-wire-housings", 3, 1),
    ),
    "Analog": (
        Line("U", "/operational-amplifiers", 4, 2),
        Line("U", "/analog-to-digital-converters-adcs", 1, 1),
        Line("R", "/chip-smd-resistors", 8, 4),
        Line("C", "/ceramic-capacitors", 6, 4),
        Line("C", "/film-capacitors", 2, 2),
        Line("RV", "/trimmers-and-potentiometers", 1, 2),
    ),
    "Motor drive": (
        Line("U", "/motor-and-gate-drivers", 2, 2),
        Line("Q", "/mosfets", 3, 4),
        Line("R", "/chip-smd-resistors", 6, 6),
        Line("C", "/tantalum-capacitors", 2, 3),
        Line("D", "/rectifiers-and-switching-diodes", 2, 4),
        Line("U", "/current-sensors", 1, 3),
    ),
    "Interface": (
        Line("U", "/transceivers-and-line-drivers", 2, 1),
        Line("U", "/usb-interface-ics", 1, 1),
        Line("D", "/tvs-diodes", 2, 3),
        Line("J", "/usb-connectors", 1, 1),
        Line("FB", "/ferrite-beads-and-chips", 2, 2),
        Line("R", "/chip-smd-resistors", 4, 4),
    ),
    "Radio and sensors": (
        Line("U", "/rf-transceivers-and-modules", 1, 1),
        Line("J", "/rf-connectors", 1, 1),
        Line("U", "/temperature-and-humidity-sensors", 2, 1),
        Line("U", "/pressure-sensors", 1, 1),
        Line("U", "/motion-and-position-sensors", 1, 1),
        Line("C", "/ceramic-capacitors", 4, 3),
    ),
}

COMPANIES = (
    Company(
        "Aurora Instruments",
        "aurora-instruments",
        "Measuring instruments for laboratories and weather services",
        "United States",
        (("Grace", "Okafor"), ("Mateo", "Lindqvist"), ("Yuki", "Tanaka")),
        (
            Board(
                "Weather Station Mk2",
                "Outdoor station: wind, rain, pressure; reports by radio",
                "Coastal Observatory",
                ("Power", "Controller", "Radio and sensors"),
            ),
            Board("Bench Supply 30V", "Laboratory supply, 30 V at 3 A", "In-house", ("Power", "Analog", "Interface")),
            Board("Data Logger USB", "Eight channels, 16 bits, USB", "In-house", ("Controller", "Analog", "Interface")),
        ),
    ),
    Company(
        "Northwind Robotics",
        "northwind-robotics",
        "Arms, grippers and carts for small factories",
        "Germany",
        (("Ines", "Keller"), ("Tomasz", "Novak"), ("Priya", "Raman"), ("Samuel", "Brandt")),
        (
            Board("Joint Controller", "One axis of the arm", "Arm 6", ("Power", "Controller", "Motor drive")),
            Board("Gripper Board", "Two fingers and their sensors", "Arm 6", ("Controller", "Motor drive", "Analog")),
            Board("Charging Dock", "Charges the cart, talks to it", "Cart 2", ("Power", "Controller", "Interface")),
            Board("Sensor Hub", "Gathers the cart's sensors", "Cart 2", ("Controller", "Radio and sensors")),
        ),
    ),
)
STATES = (
    ("New From Design", "Being worked on", True),
    ("For Production", "Approved for series", True),
    ("Obsolete", "Not for new designs", False),
)
REMARKS = (
    "Can we use a part with more stock here?",
    "The footprint has been checked against the datasheet.",
    "This gets warm at full load. Please look at the copper around it.",
    "Please keep the return path short.",
    "Changed to the part that Purchasing asked for.",
    "Is a tolerance of 1 % needed?",
)
TASKS = (
    ("Check the footprints", "Compare every new footprint with its datasheet before the release."),
    ("Find a second source", "Two lines have a single maker."),
    ("Order the prototypes", "Ten boards, assembled."),
    ("Review the power stage", "Ripple, temperature, start-up."),
)
COMMITS = ("Place the connectors", "Route the power stage", "Replace what is obsolete", "First sheets")
