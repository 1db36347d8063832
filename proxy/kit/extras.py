"""Installation of optional packages, which are extras of pyproject.toml."""


def install_line(extras: str) -> str:
    """Return where and how `extras` are installed. Not from an index, which does not have the program."""
    sandbox = " ./sandbox" if "sandbox" in extras else ""
    return f"in a copy of the project, run: pip install '.[{extras}]'{sandbox}"
