"""What the tests of this room share: a clock that is turned, and views of parts that are compiled once."""

from collections.abc import Callable

import pytest

from proxy import model
from proxy.gateway.kept import Reading
from proxy.kit import clock, shipped
from proxy.mapping import compiler, loader


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture(scope="session")
def reading() -> Callable[..., Reading]:
    """How parts are read in a view of these top fields."""
    book = loader.load(shipped.path("mappings"))
    known: dict[tuple[str, ...], Reading] = {}

    def read(*fields: str) -> Reading:
        if fields not in known:
            view = model.View(show=frozenset((field,) for field in fields))
            known[fields] = Reading(view, compiler.compile_object(book, "Part", view))
        return known[fields]

    return read
