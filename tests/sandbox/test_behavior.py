"""Behaviors that can be changed."""

import typing

import pytest

from nexar_sandbox.behavior import Behavior


def test_every_behavior_has_a_meaning() -> None:
    hints = typing.get_type_hints(Behavior, include_extras=True)
    assert [name for name, hint in hints.items() if typing.get_origin(hint) is not typing.Annotated] == []


@pytest.mark.parametrize(
    "wrong", [{"missing_token_status": 0}, {"part_limit_status": 604}, {"token_lifetime": 0}], ids=str
)
def test_an_impossible_value_is_rejected_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Behavior(**wrong)  # type: ignore[arg-type]
