"""Behaviors that can be changed: each has a deviation, and each deviation another value of the same kind."""

import typing

import msgspec
import pytest

from nexar_sandbox import behavior
from nexar_sandbox.behavior import Behavior

FIELDS = typing.get_type_hints(Behavior, include_extras=True)
DEFAULTS = {name: getattr(Behavior(), name) for name in FIELDS}


@pytest.mark.parametrize("name, changes", behavior.DEVIATIONS.items())
def test_a_deviation_has_other_values_of_the_same_kind(name: str, changes: dict[str, object]) -> None:
    assert {field: value for field, value in changes.items() if DEFAULTS[field] == value} == {}
    assert msgspec.convert(changes, Behavior) == behavior.deviate([name])


def test_every_behavior_has_a_meaning_and_a_deviation() -> None:
    assert [name for name, hint in FIELDS.items() if typing.get_origin(hint) is not typing.Annotated] == []
    assert FIELDS.keys() == {field for changes in behavior.DEVIATIONS.values() for field in changes}


@pytest.mark.parametrize(
    "wrong", [{"missing_token_status": 0}, {"part_limit_status": 604}, {"token_lifetime": 0}], ids=str
)
def test_an_impossible_value_is_rejected_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Behavior(**wrong)  # type: ignore[arg-type]


def test_an_unknown_deviation_is_rejected_with_similar_names() -> None:
    with pytest.raises(ValueError, match="unknown deviation 'token-headers'; similar ones are token-header"):
        behavior.deviate(["token-headers"])


def test_deviations_that_change_the_same_field_to_different_values_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(behavior, "DEVIATIONS", {"a": {"token_lifetime": 1}, "b": {"token_lifetime": 2}})
    with pytest.raises(ValueError, match="both change token_lifetime"):
        behavior.deviate(["a", "b"])
