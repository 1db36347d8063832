"""Fixtures: a sandbox for both applications, and the proxy's configuration with the test's store (fixture `store`)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from together.crashes.program import APPLICATIONS, LIMIT

from nexar_sandbox import app, applications, settings
from nexar_sandbox.catalog import store as catalogs
from proxy.kit import clock


@pytest.fixture
async def sandbox(catalog: catalogs.Catalog) -> AsyncIterator[app.Sandbox]:
    plans = tuple(
        applications.SandboxApplication(
            name=name, application_id=name, client_id=name, client_secret="secret-1", part_limit=10**6
        )
        for name in APPLICATIONS
    )
    async with app.serve(
        settings.SandboxSettings(applications=plans), clock=clock.SystemClock(), catalog=catalog
    ) as running:
        yield running


@pytest.fixture
def configured(sandbox: app.Sandbox, tmp_path: Path, store: str) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(f"""
upstream: {{graphql_url: "{sandbox.graphql_url}", token_url: "{sandbox.token_url}"}}
store: {store}
applications:
  limited: {{client_id: limited, client_secret: secret-1, apikeys: [KEY-limited], parts: {LIMIT}, period: lifetime}}
  unlimited: {{client_id: unlimited, client_secret: secret-1, apikeys: [KEY-unlimited]}}
cache: {{seconds: 0}}
listen: {{metrics: true}}
log: {{level: error}}
""")
    return file
