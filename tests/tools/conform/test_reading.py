"""Every mistake in an assumption file is named with its file, its line and the assumption or request."""

from pathlib import Path
from typing import get_type_hints

import pytest
from support import cases

import nexar_sandbox
from proxy import errors
from proxy.tools.conform import reading

FILE = Path(__file__).with_name("assumptions.yaml").read_text(encoding="utf-8")


def _load(folder: Path, text: str = FILE, *further: str) -> reading.Catalogue:
    names = [f"{number}.yaml" for number in range(1 + len(further))]
    for name, content in zip(names, (text, *further), strict=True):
        (folder / name).write_text(content)
    return reading.load(folder, names)


def test_a_file_has_requests_by_name_and_assumptions_in_order(tmp_path: Path) -> None:
    catalogue = _load(tmp_path)
    assert list(catalogue.requests) == ["first", "second"]
    assert [assumption.id for assumption in catalogue.assumptions] == ["sellers", "token"]


@cases.parametrize("old, new, message")
def test_a_mistake_names_file_line_and_subject(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(errors.ConfigError, match=message):
        _load(tmp_path, FILE.replace(old, new))


def test_names_of_requests_are_unique_over_all_files(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"1.yaml:2:3: first: another file has a request of this name"):
        _load(tmp_path, FILE, FILE)


def test_only_some_assumptions_need_only_their_requests(tmp_path: Path) -> None:
    chosen = _load(tmp_path).only(["token"])
    assert list(chosen.requests) == ["second"]
    assert [assumption.id for assumption in chosen.assumptions] == ["token"]


def test_an_unknown_id_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="tokens"):
        _load(tmp_path).only(["token", "tokens"])


def test_the_shipped_assumptions_name_fields_of_the_sandbox() -> None:
    named = {assumption.id: assumption.sandbox for assumption in reading.load().assumptions if assumption.sandbox}
    fields = get_type_hints(nexar_sandbox.Behavior)
    assert {id: field for id, field in named.items() if field not in fields} == {}
