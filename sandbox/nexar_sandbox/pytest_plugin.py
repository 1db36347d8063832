"""Fixtures for tests of clients of the Nexar services: `def test_bom(nexar): ...`.

pytest loads this module in every run, so it imports nothing else of the package until a test asks for a fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import nexar_sandbox

if TYPE_CHECKING:
    from nexar_sandbox import Catalog, Sandbox, SandboxSettings, SigningKey


@pytest.fixture
def nexar(
    nexar_settings: "SandboxSettings | None", _nexar_catalog: "Catalog", _nexar_key: "SigningKey"
) -> "Iterator[Sandbox]":
    """Run the Nexar services on free ports of this machine, as new for each test.

    They run in a thread, so clients may block or not. `faults.replace(parse_faults("429 share=0.5"))` makes them fail;
    `billed_parts` and `journal` tell what the client has cost and sent.
    """
    catalog = None if nexar_settings is not None and nexar_settings.catalog is not None else _nexar_catalog
    with nexar_sandbox.running(nexar_settings, catalog=catalog, key=_nexar_key) as sandbox:
        yield sandbox


@pytest.fixture
def nexar_settings() -> "SandboxSettings | None":
    """Return settings of the services, None for the defaults. Override it in a test file or conftest.py."""
    return None


@pytest.fixture(scope="session")
def _nexar_catalog() -> "Iterator[Catalog]":
    catalog = nexar_sandbox.open_catalog()
    yield catalog
    catalog.close()


@pytest.fixture(scope="session")
def _nexar_key() -> "SigningKey":
    return nexar_sandbox.generate_key()
