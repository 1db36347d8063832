"""Files that scripts of docs/ generate are up to date, and renewed by the command that a test prints."""

from collections.abc import Callable

import pytest

from docs import __main__ as renewal

PICTURE = "docs/images/first-minute.svg"


@pytest.mark.parametrize("name", renewal.PAGES)
def test_generated_file_is_what_its_script_makes(name: str, needs_program: Callable[[str], str]) -> None:
    for program in ("curl", "jq") if name == PICTURE else ():
        needs_program(program)
    made = renewal.PAGES[name]()
    assert (renewal.ROOT / name).read_text(encoding="utf-8") == made, f"renew it with: python -m docs {name}"
