"""Files that scripts of docs/ generate are up to date."""

from collections.abc import Callable
from pathlib import Path

import pytest

from docs import (
    command_line,
    compatibility,
    first_minute,
    json_schema,
    man_page,
    v3_surface,
)

ROOT = Path(__file__).parents[2]
PAGES: dict[str, tuple[Callable[[], str], str]] = {
    "docs/reference/command-line.md": (command_line.page, "python -m docs.command_line > {name}"),
    "docs/reference/compare.schema.json": (json_schema.page, "python -m docs.json_schema > {name}"),
    "docs/v3bridge.1": (lambda: man_page.page("v3bridge"), "python -m docs.man_page v3bridge > {name}"),
    "sandbox/nexar-sandbox.1": (
        lambda: man_page.page("nexar-sandbox"),
        "python -m docs.man_page nexar-sandbox > {name}",
    ),
    "docs/reference/v3-surface.md": (v3_surface.page, "python -m docs.v3_surface > {name}"),
    "docs/reference/compatibility.md": (compatibility.page, "python -m docs.compatibility > {name}"),
}


@pytest.mark.parametrize("name", PAGES)
def test_generated_file_is_what_its_script_prints(name: str) -> None:
    render, command = PAGES[name]
    assert (ROOT / name).read_text(encoding="utf-8") == render(), f"renew it with: {command.format(name=name)}"


def test_picture_of_the_first_minute_shows_what_its_commands_print(needs_program: Callable[[str], str]) -> None:
    for program in ("curl", "jq"):
        needs_program(program)
    name = "docs/images/first-minute.svg"
    drawn = (ROOT / name).read_text(encoding="utf-8")
    assert drawn == first_minute.page(), f"renew it with: python -m docs.first_minute > {name}"
