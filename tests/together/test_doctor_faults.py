"""Each fault of the sandbox and each misconfiguration of the upstream fails exactly the one right check, at 0 parts."""

import dataclasses
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support import cases
from together import inspected_upstream
from together.inspected_upstream import APPLICATION, Inspected

import nexar_sandbox
from nexar_sandbox import faults
from proxy.doctor import upstream as checks_of_upstream

OWN = nexar_sandbox.SandboxApplication(
    "A plan",
    "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a09",
    "11111111-1111-4111-8111-111111111119",
    "a-secret-of-24-characters",
)
StartUpstream = Callable[..., AbstractAsyncContextManager[nexar_sandbox.Sandbox]]


@pytest.fixture
def upstream(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> StartUpstream:
    """Starts a sandbox by the system's clock, whose Date headers aiohttp makes; proves the costs at its end."""

    @asynccontextmanager
    async def started(
        application: nexar_sandbox.SandboxApplication = OWN, rng: random.Random | None = None, **chosen: Any
    ) -> AsyncIterator[nexar_sandbox.Sandbox]:
        sandbox_settings = nexar_sandbox.SandboxSettings(**{"applications": (application,), **chosen})
        async with nexar_sandbox.serve(sandbox_settings, rng=rng, catalog=catalog, key=signing_key) as sandbox:
            yield sandbox
            assert sandbox.journal.totals.parts == 0

    return started


def addresses(sandbox: nexar_sandbox.Sandbox) -> dict[str, Any]:
    return {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url}


def credentials(application: nexar_sandbox.SandboxApplication = OWN, **changes: Any) -> dict[str, Any]:
    """The configuration of one application with these credentials."""
    known = {"client_id": application.client_id, "client_secret": application.client_secret}
    return {"demo": {**APPLICATION, **known, **changes}}


async def inspected(folder: Path, sandbox: nexar_sandbox.Sandbox, **changes: Any) -> Inspected:
    """Run all checks; `upstream` and `application` are changes of these blocks."""
    upstream = {**addresses(sandbox), **changes.pop("upstream", {})}
    return await inspected_upstream.inspect(
        folder, upstream, applications=credentials(**changes.pop("application", {})), **changes
    )


@cases.parametrize("fault, failed")
async def test_fault_fails_exactly_its_check(
    upstream: StartUpstream, tmp_path: Path, fault: str, failed: list[str]
) -> None:
    async with upstream(faults=nexar_sandbox.parse_faults(fault)) as sandbox:
        result = await inspected(tmp_path, sandbox)
    assert result.failed == failed
    assert all(result[name].advice for name in failed)


def test_table_has_every_kind_of_fault() -> None:
    table = cases.of(__file__, "fault_fails_exactly_its_check")
    assert {fault.split()[0] for fault, _ in table} == set(faults.KINDS)


@cases.parametrize("name, case")
async def test_state_of_the_service_fails_exactly_its_check(
    upstream: StartUpstream, tmp_path: Path, name: str, case: dict[str, Any]
) -> None:
    plan: dict[str, Any] = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in case.get("plan", {}).items()
    }
    async with upstream(dataclasses.replace(OWN, **plan)) as sandbox:
        sandbox.part_usage.record(OWN.application_id, used := case.get("used", 0))
        places = {"url": sandbox.url, "port": sandbox.port}
        block = {key: text.format(**places) for key, text in case.get("upstream", {}).items()}
        result = await inspected(tmp_path, sandbox, application=case.get("application", {}), upstream=block)
        assert sandbox.part_usage.used(OWN.application_id) == used
    assert (result.failed, result.warned) == (case["failed"], case.get("warned", [])), result
    assert case.get("words", "") in " ".join(f"{each.text} {each.advice}" for each in result.results.values())


async def test_healthy_upstream_passes_every_check_and_needs_one_token(upstream: StartUpstream, tmp_path: Path) -> None:
    async with upstream() as sandbox:
        result = await inspected(tmp_path, sandbox)
        assert sandbox.journal.totals.requests["token"] == 1
    assert (result.failed, result.warned) == ([], [])
    assert "does not exist yet" in result["store"].text
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


async def test_results_in_another_order_than_the_queries_are_found(
    upstream: StartUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstream() as sandbox:
        monkeypatch.setattr(checks_of_upstream, "REFERENCES", ["1", "2", "3", "4", "5"])  # as if they were sent so
        result = await inspected(tmp_path, sandbox)
    assert result.failed == ["order"]
    assert "would be mixed up" in result["order"].advice
