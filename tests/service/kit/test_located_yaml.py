"""Located YAML: values, positions and error messages."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

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


@pytest.mark.parametrize(
    "path, place",
    [
        ((), "f.yaml:1:1"),
        (("listen",), "f.yaml:1:1"),
        (("listen", "host"), "f.yaml:2:3"),
        (("listen", "ports", 1), "f.yaml:3:14"),
        (("again", "a"), "f.yaml:4:18"),
        (("merged", "b"), "f.yaml:8:3"),
        (("listen", "missing"), "f.yaml:1:1"),
        (("listen", "ports", 9), "f.yaml:3:3"),
        (("nowhere", "at", "all"), "f.yaml:1:1"),
    ],
)
def test_place_is_that_of_the_key_or_of_the_nearest_parent(
    located: located_yaml.LocatedYaml, path: Any, place: str
) -> None:
    assert located.place(path) == place


def test_data_is_plain_python(located: located_yaml.LocatedYaml) -> None:
    assert located.data["listen"] == {"host": "here", "ports": [1, 2]}
    assert located.data["merged"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "text, value",
    [
        ("NO", "NO"),
        ("on", "on"),
        ("yes", "yes"),
        ("012", "012"),
        ("12345e67", "12345e67"),
        ("2020-01-01", "2020-01-01"),
        ("1:20", "1:20"),
        ("0x1f", "0x1f"),
        ("true", True),
        ("~", None),
        ("", None),
        ("-7", -7),
        ("2.5", 2.5),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: bool | float | str | None) -> None:
    found = located_yaml.loads(f"key: {text}", "f").data["key"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text, message",
    [
        ("a: 1\na: 2", "f.yaml:2:1: the key a was already given in line 1"),
        ("a:\n  b: {c: 1, c: 2}", "f.yaml:2:13: the key c was already given in line 2"),
        ("a: *hidden", "f.yaml:1:4: found undefined alias"),
        ("a: !hidden x", "f.yaml:1:4: could not determine a constructor for the tag"),
        ("[a]: 1", "f.yaml:1:1: a key must be a word"),
        ("a: [1", "f.yaml:1:4: this bracket is never closed"),
        ("a: 'hidden", "f.yaml:1:4: this quote is never closed"),
        ("a:\n\tb: hidden", "f.yaml:2:1: this is a tab; YAML is indented with spaces"),
        ("a: @hidden", "f.yaml:1:4: a value that begins with this character needs quotes"),
        ("a:\n  b:hidden\n  c: 1", "f.yaml:3:4: line 2 before this one needs a colon and a space after its key"),
        ("a: 1\nb:hidden\n", "f.yaml:2:1: this line needs a colon and a space after its key"),
        ("a: hidden: 1", "f.yaml:1:10: a value with `: ` in it, or with text after its quotes, must be in quotes"),
        ("a: 'x' hidden", "f.yaml:1:8: a value with `: ` in it, or with text after its quotes, must be in quotes"),
        (
            "a:\n    b: hidden\n\n  # c\n   d: 1",
            "f.yaml:5:4: this line is indented by 3 spaces, line 2 (b) before it by 4;",
        ),
        ("b: hidden\n d: 1", "f.yaml:2:3: this line is indented by 1 space, line 1 (b) before it by 0;"),
        (" b: hidden\nd: 1", "f.yaml:2:1: this line is indented by 0 spaces, line 1 (b) before it by 1;"),
        ("- b: hidden\n d: 1", "f.yaml:2:2: this line is indented by 1 space, line 1 (b) before it by 2;"),
        ("a:\n  - hidden1: 1\n d: 1", "f.yaml:3:2: this line is indented by 1 space, line 2 before it by 2;"),
        ("b: hidden\n- c", "f.yaml:2:1: a list has `- ` before each item and a block of keys has none; line 1 (b)"),
        ("a: \x01", "f.yaml: holds a character"),
        ("---\na\n---\nb", "f.yaml:3:1: expected a single document"),
    ],
)
def test_error_names_the_position_and_never_quotes_a_value(text: str, message: str) -> None:
    with pytest.raises(located_yaml.YamlError) as found:
        located_yaml.loads(text, "f.yaml")
    assert str(found.value).startswith(message)
    assert "hidden" not in str(found.value)


def test_caller_chooses_the_exception_type(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"no\.yaml: cannot be read: No such file"):
        located_yaml.load(tmp_path / "no.yaml", KeyError)


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"a: \xff")
    with pytest.raises(located_yaml.YamlError, match="is not UTF-8 text"):
        located_yaml.load(tmp_path / "f.yaml")


def test_empty_file_is_none() -> None:
    empty = located_yaml.loads("# prose\n", "f.yaml")
    assert empty.data is None
    assert empty.place(("a",)) == "f.yaml"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    n: int
    words: list[str] = []


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner
    open: dict[str, Inner] = {}


@pytest.mark.parametrize(
    "raw, path, message",
    [
        ({"inner": {"n": "x"}}, ("at", "inner", "n"), "Expected `int`, got `str`"),
        ({"inner": {"n": 1, "words": ["a", 2]}}, ("at", "inner", "words", 1), "Expected `str`, got `int`"),
        ({"inner": {"n": 1, "z": 1}}, ("at", "inner", "z"), "Object contains unknown field `z`"),
        ({"inner": {}}, ("at", "inner"), "Object missing required field `n`"),
        ({}, ("at",), "Object missing required field `inner`"),
        ({"inner": {"n": 1}, "open": {"k": {"z": 1}}}, ("at", "open"), "Object contains unknown field `z`"),
    ],
)
def test_msgspec_error_becomes_a_path(raw: dict[str, Any], path: Any, message: str) -> None:
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert(raw, Outer)
    assert located_yaml.explain(found.value, ("at",)) == (message, path)
