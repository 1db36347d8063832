"""Tests of the cost of compiling a projection, in executed lines, so that it does not depend on the machine."""

from collections.abc import Generator

import pytest
from msgspec import structs
from service import executed_lines

from proxy.kit import shipped
from proxy.mapping import compiler, loader
from proxy.model import Projection

BOOK = loader.load(shipped.path("mappings"))


def lines(projection: Projection) -> int:
    def compiling() -> Generator[None, None, None]:
        compiler.compile_object(BOOK, "Part", projection)
        yield

    return executed_lines.count_per_slice(compiling())[0]


@pytest.mark.parametrize("name", ["show", "hide", "cut"])
def test_compile_time_is_linear_in_the_named_paths(name: str) -> None:
    def of(count: int) -> int:
        paths = frozenset(("specs", f"key{n}", "value") for n in range(count))
        return lines(structs.replace(Projection(include=frozenset({"specs"})), **{name: paths}))

    of(1)  # parses the paths of the mapping files, which are cached
    none, some, twice = of(1), of(50), of(100)
    assert twice - none <= 2.2 * (some - none)
