"""Whatever stands in a request, it is explained, or refused as an input."""

import os

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy import errors
from proxy.config import loader
from proxy.explain import explained_input, inputs
from proxy.explain.explainer import Explainer
from proxy.kit import shipped

EXPLAINER = Explainer(loader.load(shipped.path("config.yaml"), os.environ, upstream=False))
TARGETS = (
    '/v3/parts/match?queries=[{"mpn":"SN74S74N","limit":5},{"sku":"A-1","reference":3}]&exact_only=1',
    "/v3/parts/search?q=x&filter[fields][brand.name][]=TI&filter[queries][]=specs.resistance.value:[1 TO 5]&limit=5",
    "/v3/parts/search?facet[fields][brand.name][include]=true&stats[specs.resistance.value][exclude_filter]=false",
    "/v3/parts/get_multi?uid[]=2c3be9310496fffc&include[]=specs&show[]=specs.a.value&slice[offers]=[0:5]&hide[]=mpn",
    "/v3/brands/search?q=texas&sortby=name asc&spec_drilldown[include]=1",
)
PIECES = st.sampled_from(["%", "[", "]", '"', "&", "=", ":", "*", "é", "\ud800", "\0", "#", "-1", "9" * 11, "%ff", "x"])


@st.composite
def damaged_targets(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TARGETS))
    for _ in range(draw(st.integers(1, 6))):
        at, end = draw(st.integers(0, len(text))), draw(st.integers(0, 2))
        text = text[:at] + draw(PIECES) + text[at + end :]
    return text


@settings(max_examples=100, deadline=None)
@given(damaged_targets())
def test_a_damaged_request_is_explained_or_refused(target: str) -> None:
    try:
        read = inputs.read_request(target)
    except errors.SourceError:
        return
    if read.request is None:
        assert EXPLAINER.explain_unknown_path(read.path, read.method).error is not None
        return
    explained_input.key_of(read.request)
    explanation = EXPLAINER.explain(read.request, apikey=read.apikey, method=read.method)
    assert (explanation.error is None) == (explanation.cost is not None)
    msgspec.json.encode(explanation)


@pytest.mark.parametrize(
    "parameter, value",
    [("stats[x][exclude_filter]", "maybe"), ("facet[fields][brand.name][include]", True)],
)
def test_a_value_that_the_service_does_not_read_is_shown_as_sent(parameter: str, value: object) -> None:
    read = inputs.read_request(f"/v3/parts/search?{parameter}={'maybe' if value == 'maybe' else '1'}")
    assert read.request is not None

    explanation = EXPLAINER.explain(read.request)

    assert explanation.error is None
    assert {each.name: each.value for each in explanation.parameters}[parameter] == value
