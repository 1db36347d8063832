"""Files that scripts of docs/ generate are up to date, and renewed by the command that a test prints."""

from collections.abc import Callable
from pathlib import Path

import pytest

from docs import __main__ as renewal

PICTURE = "docs/images/first-minute.svg"


@pytest.mark.parametrize("name", renewal.PAGES)
def test_generated_file_is_what_its_script_makes(name: str, needs_program: Callable[[str], str]) -> None:
    for program in ("curl", "jq") if name == PICTURE else ():
        needs_program(program)
    made = renewal.PAGES[name]()
    assert (renewal.ROOT / name).read_text(encoding="utf-8") == made, f"renew it with: python -m docs {name}"


def test_renewal_writes_what_it_is_asked_for_and_nothing_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise RuntimeError

    monkeypatch.setattr(renewal, "ROOT", tmp_path)
    monkeypatch.setattr(renewal, "PAGES", {"a": lambda: "new a", "b": lambda: "new b", "c": fail})
    for name in "abc":
        (tmp_path / name).write_text("old")
    with pytest.raises(RuntimeError):
        renewal.main([])
    with pytest.raises(SystemExit, match="not made by a script: x; these are: a, b, c"):
        renewal.main(["a", "x"])
    assert [(tmp_path / name).read_text() for name in "abc"] == ["old"] * 3
    renewal.main(["b"])
    assert [(tmp_path / name).read_text() for name in "abc"] == ["old", "new b", "old"]
