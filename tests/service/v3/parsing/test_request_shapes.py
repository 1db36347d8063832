"""Requests of one shape: parsed as each alone, whatever came before, and no shape holds what differs between them."""

import itertools
import pickle

import pytest

from proxy import errors
from proxy.v3.parsing.request_parameters import RequestParameters
from proxy.v3.parsing.request_shapes import LENGTH_MAX, RequestShapes

TARGETS = (
    "/v3/parts/match?apikey=K&queries=[1]&include[]=specs",
    "/v3/parts/match?apikey=L&queries=[2]&include[]=specs",
    "/v3/parts/match?include[]=specs&queries=%5B3%5D&queries=[4]&apikey=",
    "/v3/parts/match?apikey=K&%71ueries=[5]&queries=[6]&include[]=specs",
    "/v3/parts/match?apikey=K&queries=[7]&%71ueries=[8]&include[]=specs",
    "/v3/parts/match?queries&apikey=K&exact_only",
    "/v3/parts/get_multi?uid[]=1&uid%5b%5d=2&uid[7]=3&uid=4&uids[]=5&apikey=K&show[]=mpn",
    "/v3/parts/get_multi?uid[]=6&apikey=K&show[]=mpn&pretty_print=1",
    "/v3/parts/search?q=a+b&filter[queries][]=x&filter[queries][]=y&apikey=K",
    "/v3/parts/search?q=\udcff&apikey=\udcc2\udcb5",
    f"/v3/parts/search?q={'x' * LENGTH_MAX}&apikey=K",
    "/v3/parts/match?&&=&=x&apikey=K&",
    "/v3/parts/match",
)
NAMES = (
    "apikey",
    "queries",
    "include",
    "exact_only",
    "uid",
    "uids",
    "show",
    "pretty_print",
    "q",
    "filter[queries]",
    "",
)


def test_requests_are_parsed_as_without_shapes() -> None:
    shapes = RequestShapes()
    for target in (*TARGETS, *reversed(TARGETS)):
        parsed, alone = shapes.parse(target), RequestParameters(target)
        assert {name: parsed.texts(name) for name in NAMES} == {name: alone.texts(name) for name in NAMES}, target
        assert sorted(parsed.names("")) == sorted(alone.names(""))


def test_what_depends_on_the_shape_is_derived_once() -> None:
    shapes, counted = RequestShapes(), itertools.count()
    derived = [shapes.parse(target).once("key", lambda: next(counted)) for target in TARGETS[:2]]
    assert derived == [0, 0]
    assert shapes.parse("/v3/parts/match?apikey=K&queries=[1]").once("key", lambda: next(counted)) == 1


def test_no_shape_holds_an_api_key() -> None:
    shapes = RequestShapes()
    shapes.parse("/v3/parts/match?apikey=held-by-nobody&queries=[1]&include[]=specs")
    held = pickle.dumps(shapes)
    assert b"specs" in held
    assert b"held-by-nobody" not in held


def test_too_many_parameters_are_refused() -> None:
    with pytest.raises(errors.BadRequest, match="parameters"):
        RequestShapes().parse(f"/v3/parts/match?{'&a' * 100_000}")
