"""Tests of the source of compiled mapping functions: its display and its content."""

import gc
import linecache
import traceback

import msgspec
import pytest

from proxy.kit import shipped
from proxy.mapping import compiler, loader
from proxy.mapping.source import ObjectSource, Source, functions_of
from proxy.model import MappingContext, Projection

MAPPINGS = loader.load(shipped.path("mappings"))
ATTRIBUTED = Projection(show=frozenset({("descriptions",)}), include=frozenset({"descriptions"}))
HERE = MappingContext("US", "USD")


def files() -> set[str]:
    """The mapping functions that linecache knows."""
    return {name for name in linecache.cache if name.startswith("<mapping ")}


def test_traceback_shows_the_line_of_the_mapping_function() -> None:
    seller = compiler.compile_object(MAPPINGS, "Seller", Projection())
    record = msgspec.convert({"id": "one", "name": "A", "homepageUrl": None, "displayFlag": None}, seller.record)
    with pytest.raises(ValueError, match="invalid literal") as failure:
        seller.map(record, HERE)
    shown = "".join(traceback.format_exception(failure.value))
    assert "in map_seller\n    seller_uid(seller.id, seller.name),  # uid" in shown


def test_traceback_names_each_object_of_the_path() -> None:
    part = compiler.compile_object(MAPPINGS, "Part", ATTRIBUTED)
    record = msgspec.convert({"descriptions": [{"text": "x", "creditString": "A"}]}, part.record)
    record.descriptions[0].creditString = 5  # nothing that was decoded has it: it makes the transform fail
    with pytest.raises(Exception, match="int") as failure:
        part.map(record, HERE)
    functions = [frame.name for frame in traceback.extract_tb(failure.value.__traceback__)]
    assert functions[1] == "map_part"
    assert {"map_description", "map_attribution", "map_source"} <= set(functions)


def test_linecache_keeps_the_source_while_the_function_exists() -> None:
    gc.collect()
    before = files()
    seller = compiler.compile_object(MAPPINGS, "Seller", Projection())
    (file,) = files() - before
    linecache.checkcache()
    assert "".join(linecache.getlines(file)) == seller.source
    del seller
    gc.collect()
    assert file not in linecache.cache


def test_equal_functions_are_written_once() -> None:
    source = Source("Part")
    url = ObjectSource("Asset", {"url": "asset"})
    calls = [source.call("Asset", {"asset": f"part.{name}"}, url) for name in ("small", "large")]
    other = source.call("Asset", {"asset": "part.cad"}, ObjectSource("Asset", {"url": "asset.url"}))
    fields = dict(zip(("small", "large", "cad"), [*calls, other], strict=True))
    source.entry_point("Part", "part", ObjectSource("Part", fields))
    assert calls == ["map_asset(part.small)", "map_asset(part.large)"]
    assert other == "map_asset_2(part.cad)"
    assert source.text().count("def ") == 3
    assert functions_of(source.text(), "Asset").count("def map_asset") == 2


def test_unused_parameter_is_left_out() -> None:
    made = ObjectSource("Offer", {"parent": "offer.parent"})
    call = Source("Part").call("Offer", {"offer": "o", "parent": "seller"}, made)
    assert call == "map_offer(o)"
