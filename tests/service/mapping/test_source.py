"""Tests of the source of compiled mapping functions: its display and its content."""

import traceback

import msgspec
import pytest

from proxy.kit import shipped
from proxy.mapping import compiler, loader
from proxy.model import MappingContext, Projection

MAPPINGS = loader.load(shipped.path("mappings"))
ATTRIBUTED = Projection(show=frozenset({("descriptions",)}), include=frozenset({"descriptions"}))
HERE = MappingContext("US", "USD")


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
