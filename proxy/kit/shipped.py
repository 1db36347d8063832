"""Paths of the files that come with the package: beside it in a checkout, inside it in a wheel."""

from pathlib import Path


def path(name: str) -> Path:
    """Return the path of a shipped file or folder, such as `config.yaml`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_shipped" / name
    return inside if inside.exists() else package.parent / name
