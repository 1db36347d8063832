"""Tests of the forms that ignore rules require of hidden values."""

from typing import Any

import pytest

from proxy.tools.compare.judging import tolerances

CLICK = "https://octopart.com/opatz8j6/a1?t=abc"
UID = "2c3be9310496fffc"


@pytest.mark.parametrize(
    "form, value, has",
    [
        ("click-link", CLICK, True),
        ("click-link", "https://octopart.com/opatz8j6/b1?t=abc", False),  # the maker's page
        ("click-link", "https://octopart.com/opatz8j6/a1?t=", False),
        ("click-link", "https://octopart.com/", False),
        ("click-link", "https://www.digikey.com/opatz8j6/a1?t=abc", False),
        ("click-link", "http://octopart.com/opatz8j6/a1?t=abc", False),
        ("click-link", "296-1-ND", False),
        ("click-link", None, False),
        ("link", "https://www.digikey.com/product/1", True),
        ("link", "https://www.digikey.com/?item=1", True),
        ("link", "https://www.digikey.com", False),
        ("link", "https://www.digikey.com/", False),
        ("link", "ftp://www.digikey.com/x", False),
        ("link", "https://[", False),
        ("link", "https://a b/c", False),
        ("text", "x", True),
        ("text", " ", False),
        ("text", 3, False),
        ("blank", None, True),
        ("blank", "", True),
        ("blank", 0, False),
        ("no-value", None, True),
        ("no-value", "", False),
        ("number", 0, True),
        ("number", -1, False),
        ("number", "3", False),
        ("number", True, False),
        ("country", "US", True),
        ("country", "us", False),
        ("currency", "EUR", True),
        ("currency", "EURO", False),
        ("uid", UID, True),
        ("uid", UID[:-1], False),
    ],
)
def test_value_matches_its_form_or_not(form: tolerances.Form, value: Any, has: bool) -> None:
    assert tolerances.has_form(value, (form,)) is has


def test_one_of_several_forms_is_sufficient() -> None:
    assert tolerances.has_form(None, ("text", "no-value"))
    assert not tolerances.has_form(1, ("text", "no-value"))


def test_requested_uid_must_be_equal() -> None:
    requested_uids = frozenset((UID, "0" * 16))
    assert not tolerances.has_form(UID, ("other-uid",), "redirected_uids[0]", requested_uids)
    assert tolerances.has_form("1" * 16, ("other-uid",), "redirected_uids[0]", requested_uids)
    assert not tolerances.has_form("x", ("other-uid",), "redirected_uids[0]", requested_uids)


def test_each_of_several_parts_has_its_requested_uid() -> None:
    requested_uids = frozenset((UID, "0" * 16))
    assert not tolerances.has_form(UID, ("other-uid",), f"[{UID}].redirected_uids[0]", requested_uids)
    assert tolerances.has_form(UID, ("other-uid",), f"[{'0' * 16}].redirected_uids[0]", requested_uids)


def test_every_form_has_a_check() -> None:
    assert all(tolerances.has_form("x", (form,)) in (True, False) for form in tolerances.FORMS)
