"""Building blocks without a domain, which import no other package; here text for people, and files of the program."""

import hashlib
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

SCHEMA = "schema.graphql"  # in the mappings folder
UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 part`, `2,000 parts`; `plural` is given where it is not `singular` + s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Return text with what a terminal or browser would obey made visible, such as marks of writing direction."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )


def print_mistake(message: str) -> None:
    """Print why the program ends, each line of it under the program's name."""
    for line in printable(message).splitlines():  # none where the help has been printed instead
        print(f"v3bridge: {line}", file=sys.stderr)  # noqa: T201 - what a command has to say


def duration(seconds: float) -> str:
    """Return seconds in the two largest units, such as `2 h 5 min`; below a second in ms."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    whole = int(seconds)
    for size, unit, smaller, rest_unit in UNITS:
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {rest_unit}" if rest else "")
    return f"{whole} s"


def rfc3339(seconds: float) -> str:
    """Format a time in seconds since 1970 as RFC 3339 in UTC, to whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def install_line(extras: str) -> str:
    """Return where and how `extras` are installed. Not from an index, which does not have the program."""
    sandbox = " ./sandbox" if "sandbox" in extras else ""
    return f"in a copy of the project, run: pip install '.[{extras}]'{sandbox}"


def shipped(name: str) -> Path:
    """Return the path of a shipped file or folder, such as `config.yaml`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_shipped" / name
    return inside if inside.exists() else package.parent / name


def digest(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of files, in hexadecimal. Folders and order do not count."""
    contents = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)
    # The form of sha256sum's output, so that a digest can be made without this program.
    return hashlib.sha256("".join(f"{content}  {name}\n" for name, content in contents).encode()).hexdigest()
