"""Fixtures: a sandbox for both applications, and the proxy's configuration with the test's store (fixture `store`)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from together.crashes.program import APPLICATIONS, LIMIT

import nexar_sandbox
from proxy.kit import clock


@pytest.fixture
async def sandbox(catalog: nexar_sandbox.Catalog) -> AsyncIterator[nexar_sandbox.Sandbox]:
    plans = tuple(
        nexar_sandbox.SandboxApplication(
            name=name, application_id=name, client_id=name, client_secret="secret-1", part_limit=10**6
        )
        for name in APPLICATIONS
    )
    async with nexar_sandbox.serve(
        nexar_sandbox.SandboxSettings(applications=plans), clock=clock.SystemClock(), catalog=catalog
    ) as running:
        yield running


@pytest.fixture
def configured(sandbox: nexar_sandbox.Sandbox, tmp_path: Path, store: str) -> Path:
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
