"""docs/reference/v3-surface.md is what the program prints, and its parameters are those that are really read."""

from pathlib import Path
from typing import Any

import pytest
from support import running_proxy, scripted_upstream
from typer import testing

from docs import citations
from proxy.cli import main
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.v3 import endpoints
from proxy.v3.description import field_names, object_schemas, openapi, surface_page
from proxy.v3.parsing import match_queries, v3_parameters
from proxy.v3.parsing import request_parameters as readers

PAGE = Path(__file__).parents[3] / "docs/reference/v3-surface.md"
RENEW = "v3bridge surface > docs/reference/v3-surface.md"
UNREAD = {"userkey"}  # described because clients send it
REFUSED = {"spec_drilldown["}  # looked for where it is not described: there it is refused
FIELD = "brand.name"


@pytest.fixture(scope="module")
def book() -> Any:
    return loader.load(shipped.path("mappings"))


def test_page_is_up_to_date(book: Any) -> None:
    fresh = citations.linked(surface_page.page(book), PAGE.parent)
    assert PAGE.read_text(encoding="utf-8") == fresh, f"docs/reference/v3-surface.md is stale; renew it with: {RENEW}"


def test_command_prints_the_page(book: Any) -> None:
    done = testing.CliRunner().invoke(main.program(), ["surface"])
    assert (done.exit_code, done.stdout) == (0, surface_page.page(book))


@pytest.mark.parametrize("name", ["Part", "Brand", "Category", "Seller"])
def test_fields_of_show_hide_and_slice_are_those_of_the_object(book: Any, name: str) -> None:
    known = set(object_schemas.paths_of(book, name))
    by_name = {each.name: field_names.named(book, name, each) for each in v3_parameters.GLOBALS}
    assert set(by_name["include[]"]) == book.includable(name)
    assert set(by_name[f"slice[{v3_parameters.FIELD}]"]) <= known == set(by_name["show[]"]) == set(by_name["hide[]"])


def test_documented_query_keys_and_defaults_are_those_of_the_code(book: Any) -> None:
    assert {key.name: key.default for key in v3_parameters.QUERY} == match_queries.DEFAULTS
    echo = openapi.document(book)["components"]["schemas"]["PartsMatchQuery"]
    assert list(echo["properties"]) == ["__class__", *match_queries.DEFAULTS]


class _Reads:
    """Which parameters were asked for, and as what: name → kinds, and (default, maximum) of whole numbers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: set[str] = set()
        self.flags: set[str] = set()
        self.wholes: dict[str, tuple[int, int]] = {}
        self.starts: set[str] = set()
        real = readers.RequestParameters
        monkeypatch.setattr(real, "text", self._noting(real.text, self.texts.add))
        monkeypatch.setattr(real, "texts", self._noting(real.texts, self.texts.add))
        monkeypatch.setattr(real, "flag", self._noting(real.flag, self.flags.add))
        monkeypatch.setattr(real, "names", self._noting(real.names, self.starts.add))
        monkeypatch.setattr(real, "whole", self._noting(real.whole, self._whole))

    @staticmethod
    def _noting(real: Any, note: Any) -> Any:
        def read(self: Any, name: Any, *more: Any) -> Any:
            note(name, *more)
            return real(self, name, *more)

        return read

    def _whole(self, name: Any, default: Any, maximum: Any) -> None:
        self.wholes[name] = (default, maximum)


def _read_as(parameter: Any) -> Any:
    """The name that code asks for: without the brackets of an array, with a field in its place."""
    return parameter.name.removesuffix("[]").replace(v3_parameters.FIELD, FIELD)


def _target(endpoint: Any, own: Any) -> Any:
    """A request that makes the code look at everything there is."""
    sent = [f"{_read_as(each)}=1" for each in own if each.kind in ("flag", "whole", "texts")]
    slices = "&slice[offers]=0:1&show[]=mpn&hide[]=mpn&queries=[]"
    path = endpoint.path.replace("{uid}", "bd4d768f82c5628a")
    return f"/v3{path}?apikey={running_proxy.KEY}&{'&'.join(sent)}{slices}"


@pytest.fixture
async def client() -> Any:
    """A proxy whose upstream knows nothing."""
    async with scripted_upstream.running() as upstream:
        upstream.respond_with({"data": {}})
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
        async with running_proxy.running(settings) as client:
            yield client


@pytest.mark.parametrize("endpoint", endpoints.ENDPOINTS, ids=lambda endpoint: endpoint.path)
async def test_documented_parameters_are_those_of_the_code(
    endpoint: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [v3_parameters.APIKEY, *v3_parameters.of(endpoint), *v3_parameters.GLOBALS]
    own = {_read_as(each): each for each in told if f"{{{each.name}}}" not in endpoint.path}
    reads = _Reads(monkeypatch)
    await client.get(_target(endpoint, v3_parameters.of(endpoint)))
    flags = {name for name, each in own.items() if each.kind == "flag"}
    wholes = {name: (each.default, each.maximum) for name, each in own.items() if each.kind == "whole"}
    elsewhere = {name for name, each in own.items() if each.kind == "slice"} | UNREAD
    assert (reads.flags, reads.wholes) == (flags, wholes)
    assert set(own) - elsewhere <= reads.texts <= set(own)
    assert [start for start in reads.starts - REFUSED if not any(name.startswith(start) for name in own)] == []
