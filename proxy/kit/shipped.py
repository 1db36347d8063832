"""Where the files lie that come with the program: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path


def path(name: str) -> Path:
    """The shipped file or folder of that name, such as `config.yaml`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_shipped" / name
    return inside if inside.exists() else package.parent / name
