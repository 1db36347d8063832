"""Sample workspaces and projects of a new sandbox, as declarations; parts are taken from the catalog.

A sheet is one block of a schematic. Its entries have: designator prefix, end of the path of a catalog category, maximum
number of different parts, maximum number of pieces of each.
"""

from typing import NamedTuple


class SheetParts(NamedTuple):
    """Parts of one category on a sheet."""

    prefix: str
    category: str
    parts: int
    pieces: int


class ProjectTemplate(NamedTuple):
    """A project of a sample workspace."""

    name: str
    description: str
    client: str
    sheets: tuple[str, ...]


class WorkspaceTemplate(NamedTuple):
    """A workspace with its users (first and last name; the first one is the administrator) and projects."""

    name: str
    slug: str
    description: str
    region: str
    users: tuple[tuple[str, str], ...]
    projects: tuple[ProjectTemplate, ...]


SHEETS = {
    "Power": (
        SheetParts("U", "/linear-voltage-regulators", 2, 1),
        SheetParts("U", "/switching-regulators", 1, 1),
        SheetParts("L", "/fixed-inductors", 2, 2),
        SheetParts("D", "/schottky-diodes", 2, 2),
        SheetParts("C", "/aluminum-electrolytic-capacitors", 3, 2),
        SheetParts("C", "/ceramic-capacitors", 4, 5),
        SheetParts("R", "/chip-smd-resistors", 5, 4),
        SheetParts("F", "/fuses", 1, 1),
        SheetParts("J", "/terminal-blocks", 1, 2),
    ),
    "Controller": (
        SheetParts("U", "/microcontrollers", 1, 1),
        SheetParts("U", "/flash-memory", 1, 1),
        SheetParts("U", "/eeprom", 1, 1),
        SheetParts("Y", "/crystals", 2, 1),
        SheetParts("C", "/ceramic-capacitors", 8, 9),
        SheetParts("R", "/chip-smd-resistors", 9, 6),
        SheetParts("D", "/leds", 3, 2),
        SheetParts("SW", "/tactile-switches", 2, 2),
        SheetParts("J", "/headers-and-wire-housings", 3, 1),
    ),
    "Analog": (
        SheetParts("U", "/operational-amplifiers", 4, 2),
        SheetParts("U", "/analog-to-digital-converters-adcs", 1, 1),
        SheetParts("R", "/chip-smd-resistors", 8, 4),
        SheetParts("C", "/ceramic-capacitors", 6, 4),
        SheetParts("C", "/film-capacitors", 2, 2),
        SheetParts("RV", "/trimmers-and-potentiometers", 1, 2),
    ),
    "Motor drive": (
        SheetParts("U", "/motor-and-gate-drivers", 2, 2),
        SheetParts("Q", "/mosfets", 3, 4),
        SheetParts("R", "/chip-smd-resistors", 6, 6),
        SheetParts("C", "/tantalum-capacitors", 2, 3),
        SheetParts("D", "/rectifiers-and-switching-diodes", 2, 4),
        SheetParts("U", "/current-sensors", 1, 3),
    ),
    "Interface": (
        SheetParts("U", "/transceivers-and-line-drivers", 2, 1),
        SheetParts("U", "/usb-interface-ics", 1, 1),
        SheetParts("D", "/tvs-diodes", 2, 3),
        SheetParts("J", "/usb-connectors", 1, 1),
        SheetParts("FB", "/ferrite-beads-and-chips", 2, 2),
        SheetParts("R", "/chip-smd-resistors", 4, 4),
    ),
    "Radio and sensors": (
        SheetParts("U", "/rf-transceivers-and-modules", 1, 1),
        SheetParts("J", "/rf-connectors", 1, 1),
        SheetParts("U", "/temperature-and-humidity-sensors", 2, 1),
        SheetParts("U", "/pressure-sensors", 1, 1),
        SheetParts("U", "/motion-and-position-sensors", 1, 1),
        SheetParts("C", "/ceramic-capacitors", 4, 3),
    ),
}

WORKSPACES = (
    WorkspaceTemplate(
        "Aurora Instruments",
        "aurora-instruments",
        "Measuring instruments for laboratories and weather services",
        "United States",
        (("Grace", "Okafor"), ("Mateo", "Lindqvist"), ("Yuki", "Tanaka")),
        (
            ProjectTemplate(
                "Weather Station Mk2",
                "Outdoor station: wind, rain, pressure; reports by radio",
                "Coastal Observatory",
                ("Power", "Controller", "Radio and sensors"),
            ),
            ProjectTemplate(
                "Bench Supply 30V", "Laboratory supply, 30 V at 3 A", "In-house", ("Power", "Analog", "Interface")
            ),
            ProjectTemplate(
                "Data Logger USB", "Eight channels, 16 bits, USB", "In-house", ("Controller", "Analog", "Interface")
            ),
        ),
    ),
    WorkspaceTemplate(
        "Northwind Robotics",
        "northwind-robotics",
        "Arms, grippers and carts for small factories",
        "Germany",
        (("Ines", "Keller"), ("Tomasz", "Novak"), ("Priya", "Raman"), ("Samuel", "Brandt")),
        (
            ProjectTemplate("Joint Controller", "One axis of the arm", "Arm 6", ("Power", "Controller", "Motor drive")),
            ProjectTemplate(
                "Gripper Board",
                "Two fingers and their sensors",
                "Arm 6",
                ("Controller", "Motor drive", "Analog"),
            ),
            ProjectTemplate(
                "Charging Dock", "Charges the cart, talks to it", "Cart 2", ("Power", "Controller", "Interface")
            ),
            ProjectTemplate("Sensor Hub", "Gathers the cart's sensors", "Cart 2", ("Controller", "Radio and sensors")),
        ),
    ),
)
STATES = (
    ("New From Design", "Being worked on", True),
    ("For Production", "Approved for series", True),
    ("Obsolete", "Not for new designs", False),
)
COMMENTS = (
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
