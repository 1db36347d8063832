"""Tests of opening the source of parts: what needs no upstream."""

from pathlib import Path

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


def test_results_of_the_sandbox_are_kept_in_the_state_folder(tmp_path: Path) -> None:
    location = sources.sandbox_cache("1", {"XDG_STATE_HOME": str(tmp_path)})
    assert location.store.reveal() == f"sqlite:{tmp_path}/v3bridge/sheet/sandbox.sqlite"


def test_each_login_has_a_name_of_its_own() -> None:
    names = [sources.login_name(config.ClientId(text)) for text in ("one", "two", "one")]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith("workbook-") and "one" not in name.removeprefix("workbook-") for name in names)
