"""Located YAML: values, positions and error messages."""

import re
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy.kit import located_yaml

TEXT = """\
listen:
  host: here
  ports: [1, 2]
shared: &shared {a: 1}
again: *shared
merged:
  <<: *shared
  b: 2
"""


@pytest.fixture
def located() -> located_yaml.LocatedYaml:
    return located_yaml.loads(TEXT, "f.yaml")


@cases.parametrize("path, place")
def test_place_is_that_of_the_key_or_of_the_nearest_parent(
    located: located_yaml.LocatedYaml, path: Any, place: str
) -> None:
    assert located.place(path) == place


def test_data_is_plain_python(located: located_yaml.LocatedYaml) -> None:
    assert located.data["listen"] == {"host": "here", "ports": [1, 2]}
    assert located.data["merged"] == {"a": 1, "b": 2}


@cases.parametrize("text, value")
def test_plain_scalars_follow_yaml_1_2(text: str, value: bool | float | str | None) -> None:
    found = located_yaml.loads(f"key: {text}", "f").data["key"]
    assert (found, type(found)) == (value, type(value))


@cases.parametrize("text, message")
def test_error_names_the_position_and_never_quotes_a_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as found:
        located_yaml.loads(text, "f.yaml")
    assert "hidden" not in str(found.value)


def test_caller_chooses_the_exception_type(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"no\.yaml: cannot be read: No such file"):
        located_yaml.load(tmp_path / "no.yaml", KeyError)


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        located_yaml.load(tmp_path / "f.yaml")


def test_empty_file_is_none() -> None:
    empty = located_yaml.loads("# prose\n", "f.yaml")
    assert empty.data is None
    assert empty.place(("a",)) == "f.yaml"
