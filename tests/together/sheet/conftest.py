"""Fixtures of the tests of the source of parts: a sandbox, without a proxy in front of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from support import sheet_source

from nexar_sandbox import app
from nexar_sandbox import settings as sandbox_settings
from nexar_sandbox.catalog import store
from nexar_sandbox.identity import keys
from proxy.kit import clock


@pytest.fixture
def serve(time: clock.ManualClock, catalog: store.Catalog, signing_key: keys.SigningKey) -> sheet_source.Serve:
    """`async with serve(…) as sandbox`, with fields of SandboxSettings."""

    def served(own: store.Catalog | None = None, **settings: Any) -> AbstractAsyncContextManager[app.Sandbox]:
        chosen = sandbox_settings.SandboxSettings(**settings)
        return app.serve(chosen, clock=time, catalog=own or catalog, key=signing_key)

    return served


@pytest.fixture
async def sandbox(serve: sheet_source.Serve) -> AsyncIterator[app.Sandbox]:
    async with serve() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.Catalog]:
    """A catalog with a part for each of 1000 numbers."""
    path = tmp_path_factory.mktemp("catalog") / "numbered.jsonl"
    path.write_text("".join(f'{{"mpn": "SHEET{n:05}", "manufacturer": "370"}}\n' for n in range(sheet_source.NUMBERS)))
    opened_catalog = store.open_catalog(extra=path)
    yield opened_catalog
    opened_catalog.close()
