"""The assumption files fit together; of others a mistake is named with file and line."""

from pathlib import Path

import msgspec
import pytest

from proxy import config, errors
from proxy.tools.conform import expressions, reading
from proxy.tools.conform.assumptions import CONDITIONS

FILE = Path(__file__).with_name("assumptions.yaml").read_text(encoding="utf-8")


def _load(folder: Path, text: str = FILE) -> reading.Catalogue:
    (folder / "0.yaml").write_text(text)
    return reading.load(folder, ["0.yaml"])


def test_a_file_has_requests_by_name_and_assumptions_in_order(tmp_path: Path) -> None:
    catalogue = _load(tmp_path)
    assert list(catalogue.requests) == ["first", "second"]
    assert [assumption.id for assumption in catalogue.assumptions] == ["sellers", "token"]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("tier: core", "tier: main", "0.yaml:13:5: Invalid enum value 'main'"),
        ("expected: true", "expect: true", "0.yaml:16:5: .*unknown field `expect`"),
        ("kind: token", "kind: ftp", "0.yaml:1:1: Invalid enum value 'ftp'"),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(errors.ConfigError, match=message):
        _load(tmp_path, FILE.replace(old, new))


def test_only_some_assumptions_need_only_their_requests(tmp_path: Path) -> None:
    chosen = _load(tmp_path).only(["token"])
    assert list(chosen.requests) == ["second"]
    assert [assumption.id for assumption in chosen.assumptions] == ["token"]


def test_an_unknown_id_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="tokens"):
        _load(tmp_path).only(["token", "tokens"])


@pytest.fixture(scope="module")
def shipped() -> reading.Catalogue:
    return reading.load()


def test_the_shipped_names_and_ids_are_unique_over_all_files(shipped: reading.Catalogue) -> None:
    alone = [reading.load(files=[name]) for name in reading.FILES]
    assert sum(len(each.requests) for each in alone) == len(shipped.requests)
    assert len({assumption.id for assumption in shipped.assumptions}) == len(shipped.assumptions)


def test_each_shipped_request_is_whole_and_observed(shipped: reading.Catalogue) -> None:
    observed = {name for assumption in shipped.assumptions for name in assumption.requests}
    assert observed == set(shipped.requests)
    for name, request in shipped.requests.items():
        assert request.kind != "graphql" or request.document or request.body is not None, name
        assert request.kind != "http" or request.url, name
        assert request.parts >= 0, name
        assert set(request.features) <= set(config.FEATURES), name
        assert request.needs is None or request.needs in CONDITIONS, name


def test_each_shipped_assumption_observes_what_it_expects(shipped: reading.Catalogue) -> None:
    for assumption in shipped.assumptions:
        assert assumption.requests, assumption.id
        assert (assumption.expected is msgspec.UNSET) is (assumption.pattern is not None), assumption.id
        expressions.compile_expression(assumption.observe)
