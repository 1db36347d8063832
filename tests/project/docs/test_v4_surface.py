"""docs/reference/v4-surface.md lists the root fields of v4's schema, and the fields of its REST wrapper."""

from typing import Any

from proxy.kit import shipped
from proxy.mapping import coverage, loader
from proxy.v4 import rewrite, wrapper

PAGE = "docs/reference/v4-surface.md"


def test_root_fields_are_those_of_the_schema(pages: Any) -> None:
    query = rewrite.schema().query_type
    assert query is not None
    documented = {(row[0].strip("`"), row[1].strip("`")) for row in pages[PAGE].table("root field")}
    assert documented == {(name, rewrite.field_name("Query", name)) for name in query.fields}


def test_fields_of_the_wrapper_are_those_of_its_mappings(pages: Any) -> None:
    view = loader.load(shipped.path("mappings")).views[wrapper.MATCH.object]
    expected = []
    for row in coverage.of_mappings(view):
        notes = (row.note, "`include[]`" if row.include else "", row.feature or "")
        note = "; ".join(filter(None, notes))
        expected.append([f"`{row.object.removeprefix('Wrapper')}.{row.field}`", f"`{row.upstream}`", note])
    assert pages[PAGE].table("field") == expected
