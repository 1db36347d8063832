"""Tests of opening the source of parts: what needs no upstream."""

import pytest

from proxy import config
from proxy.tools.sheet import sources


@pytest.mark.parametrize(
    "excluded, features",
    [
        ((False, False), {"LEAD_TIME", "DATASHEETS"}),
        ((True, False), {"LEAD_TIME"}),
        ((False, True), {"DATASHEETS"}),
        ((True, True), set()),
    ],
)
def test_login_has_the_features_of_the_functions_without_the_excluded_ones(
    excluded: tuple[bool, bool], features: set[str]
) -> None:
    login = sources.ApplicationLogin(config.ClientId("id"), config.Secret("a secret"), *excluded)
    assert set(login.features) == features
    assert "a secret" not in repr(login)
