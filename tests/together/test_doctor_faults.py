"""Each fault of the sandbox and each misconfiguration of the upstream gives exactly the one right diagnosis, at 0 parts
and with at most one token request."""

import dataclasses
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from together import inspected_upstream
from together.inspected_upstream import APPLICATION, Inspected

import nexar_sandbox
from nexar_sandbox import faults

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
            assert sandbox.journal.totals.requests["token"] <= 1

    return started


def addresses(sandbox: nexar_sandbox.Sandbox) -> dict[str, Any]:
    return {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url}


def credentials(application: nexar_sandbox.SandboxApplication = OWN, **changes: Any) -> dict[str, Any]:
    """The configuration of one application with these credentials."""
    known = {"client_id": application.client_id, "client_secret": application.client_secret}
    return {"demo": {**APPLICATION, **known, **changes}}


async def inspected(folder: Path, sandbox: nexar_sandbox.Sandbox, **changes: Any) -> Inspected:
    """Run all stages; `upstream` and `application` are changes of these blocks."""
    upstream = {**addresses(sandbox), **changes.pop("upstream", {})}
    return await inspected_upstream.inspect(
        folder, upstream, applications=credentials(**changes.pop("application", {})), **changes
    )


# A fault, and the codes of the findings that fail.
FAULTS: list[tuple[str, set[str]]] = [
    ("latency ms=50", set()),
    ("latency ms=60000", {"graphql_timeout"}),
    ("latency on=token ms=60000", {"identity_timeout"}),
    ("reset", {"graphql_disconnects"}),
    ("reset when=after", {"graphql_disconnects"}),
    ("reset on=token", {"identity_disconnects"}),
    ("reset on=token when=after", {"identity_disconnects"}),
    *(
        (f"5xx status={status} body={body}", {"graphql_failing"})
        for status in (500, 502, 503, 504)
        for body in ("html", "json")
    ),
    *(
        (f"5xx on=token status={status} body={body}", {"identity_failing"})
        for status in (500, 503)
        for body in ("html", "json")
    ),
    ("429 retry_after=30", {"graphql_rate_limited"}),
    ("429 on=token retry_after=30", {"token_rate_limited"}),
    ("401", {"token_refused"}),
    ("expired", {"token_refused"}),
    ("cut", {"graphql_unreadable"}),
    ("cut after=0", {"graphql_unreadable"}),
    ("cut on=token", {"identity_unreadable"}),
    ("malformed", {"graphql_unreadable"}),
    ("malformed body=empty", {"graphql_unreadable"}),
    ("malformed body=html", {"graphql_wrong_address"}),
    ("malformed on=token", {"identity_unreadable"}),
    ("malformed on=token body=empty", {"identity_unreadable"}),
    ("malformed on=token body=html", {"identity_wrong_address"}),
    ("slow-loris ms=900", {"graphql_timeout"}),
    ("slow-loris on=token ms=900", {"identity_timeout"}),
    ("no-expiry lacks=expires_in", set()),
    ("no-expiry lacks=exp", set()),
    ("no-expiry lacks=both", {"token_unusable"}),
    ("wrong-clock seconds=3600", {"identity_clock_wrong"}),
    ("wrong-clock seconds=-3600", {"identity_clock_wrong"}),
    ("wrong-clock seconds=120", {"identity_clock_wrong"}),  # the GraphQL service refuses tokens of the future
    ("wrong-clock seconds=-120", set()),
    ("wrong-clock seconds=20", {"identity_clock_wrong"}),
    ("quota", {"plan_without_parts"}),  # the limit is the usage, which is 0
    ("quota at=0", {"plan_without_parts"}),
    ("quota at=1", set()),
    ("missing-field field=SupPart.octopartUrl", {"schema_drift"}),
    ("missing-field field=Query.supCategories", {"schema_drift"}),
    ("missing-field field=Query.supSearchMpn", {"schema_drift"}),
    ("missing-field field=SupPartResultSet.specAggs", {"schema_drift"}),
    ("missing-field field=SupPart.genericMpn", set()),  # nothing reads it
]
# Faults that strike only some requests, so that their findings depend on chance.
RANDOM = {"mixed"}


@pytest.mark.parametrize("fault, codes", FAULTS, ids=[fault for fault, _ in FAULTS])
async def test_fault_gives_exactly_its_diagnosis(
    upstream: StartUpstream, tmp_path: Path, fault: str, codes: set[str]
) -> None:
    async with upstream(faults=nexar_sandbox.parse_faults(fault)) as sandbox:
        result = await inspected(tmp_path, sandbox)
    assert result.failed == codes
    assert result.report.ok is not bool(codes)


@pytest.mark.parametrize("seed", range(5))
async def test_mix_of_faults_ends_in_findings(upstream: StartUpstream, tmp_path: Path, seed: int) -> None:
    mixed = [fault for fault in nexar_sandbox.parse_faults("mixed share=0.9") if "slow" not in faults.fault_text(fault)]
    async with upstream(faults=tuple(mixed), rng=random.Random(seed)) as sandbox:
        result = await inspected(tmp_path, sandbox)
    assert {finding.code.partition("_")[0] for finding in result.findings if finding.outcome == "failed"} <= {
        "identity",
        "graphql",
        "token",
    }


def test_table_has_every_kind_of_fault() -> None:
    assert {fault.split()[0] for fault, _ in FAULTS} == set(faults.KINDS) - RANDOM


MISCONFIGURATIONS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("wrong client id", {"application": {"client_id": "11111111-1111-4111-8111-111111111110"}}, {"client_refused"}),
    ("wrong client secret", {"application": {"client_secret": "another-secret-of-30-characters"}}, {"client_refused"}),
    ("unknown scope", {"upstream": {"scope": "supply.domian"}}, {"scope_refused"}),
    ("scope of another domain", {"upstream": {"scope": "supply.domain design.domain"}}, {"scope_refused"}),
    ("no scope", {"upstream": {"scope": ""}}, set()),
    ("unknown site", {"upstream": {"site": "octopard"}}, {"site_unknown"}),
]


@pytest.mark.parametrize("name, changes, codes", MISCONFIGURATIONS, ids=[name for name, *_ in MISCONFIGURATIONS])
async def test_misconfiguration_gives_exactly_its_diagnosis(
    upstream: StartUpstream, tmp_path: Path, name: str, changes: dict[str, Any], codes: set[str]
) -> None:
    async with upstream() as sandbox:
        result = await inspected(tmp_path, sandbox, **changes)
    assert result.failed == codes


ADDRESSES: list[tuple[str, dict[str, str], set[str]]] = [
    ("token_url without its path", {"token_url": "{url}/"}, {"identity_wrong_address"}),
    ("token_url at an unknown path", {"token_url": "{url}/connect/tokens"}, {"identity_wrong_address"}),
    ("token_url of the GraphQL service", {"token_url": "{url}/graphql"}, {"identity_unreadable"}),
    ("graphql_url at an unknown path", {"graphql_url": "{url}/graphqls"}, {"graphql_wrong_address"}),
    ("graphql_url without its path", {"graphql_url": "{url}/"}, {"graphql_wrong_address"}),
    ("closed port", {"graphql_url": "http://127.0.0.1:9/graphql"}, {"connection_failed"}),
    ("unknown host", {"token_url": "http://identity.invalid/connect/token"}, {"name_not_resolved"}),
    ("https on a plain port", {"token_url": "https://127.0.0.1:{port}/connect/token"}, {"tls_failed"}),
    ("proxy that is not there", {"proxy": "http://127.0.0.1:9"}, {"proxy_failed"}),
]


@pytest.mark.parametrize("name, changes, codes", ADDRESSES, ids=[name for name, *_ in ADDRESSES])
async def test_wrong_address_gives_exactly_its_diagnosis(
    upstream: StartUpstream, tmp_path: Path, name: str, changes: dict[str, str], codes: set[str]
) -> None:
    async with upstream() as sandbox:
        filled = {key: text.format(url=sandbox.url, port=sandbox.port) for key, text in changes.items()}
        result = await inspected(tmp_path, sandbox, upstream=filled)
    assert result.failed == codes


PLANS: list[tuple[str, dict[str, Any], dict[str, Any], set[str], set[str]]] = [
    ("no parts", {"part_limit": 0}, {}, {"plan_without_parts"}, set()),
    ("no parts, by a documented status", {"part_limit": 0, "status": 500}, {}, {"plan_without_parts"}, set()),
    ("10 parts, used", {"part_limit": 10, "used": 10}, {}, {"part_limit_reached"}, set()),
    (
        "100 parts, used",
        {"part_limit": 100, "used": 100},
        {"parts": 1000},
        {"part_limit_reached"},
        {"part_limit_differs"},
    ),
    ("1000 parts, used", {"part_limit": 1000, "used": 1000}, {"parts": 1000}, {"part_limit_reached"}, set()),
    ("no parts configured", {}, {"parts": 0}, {"quota_exhausted"}, set()),
    ("without TECH_SPECS", {"features": frozenset({"DATASHEETS"})}, {}, {"feature_missing"}, set()),
    ("TECH_SPECS, which are not configured", {}, {"features": ["DATASHEETS"]}, set(), {"feature_unused"}),
    ("neither", {"features": frozenset()}, {"features": ["DATASHEETS"]}, set(), set()),
    ("a design application", {"domains": ("design",)}, {"scope": ""}, {"scope_missing"}, set()),
    ("an application for user logins", {"flows": frozenset({"authorization_code"})}, {}, {"grant_refused"}, set()),
]


@pytest.mark.parametrize("name, plan, configured, codes, warned", PLANS, ids=[name for name, *_ in PLANS])
async def test_plan_is_compared_with_the_configuration(
    upstream: StartUpstream,
    tmp_path: Path,
    name: str,
    plan: dict[str, Any],
    configured: dict[str, Any],
    codes: set[str],
    warned: set[str],
) -> None:
    plan, configured = dict(plan), dict(configured)
    used, status = plan.pop("used", 0), plan.pop("status", 200)
    upstream_changes = {"scope": configured.pop("scope")} if "scope" in configured else {}
    async with upstream(
        dataclasses.replace(OWN, **plan), behavior=nexar_sandbox.Behavior(part_limit_status=status)
    ) as sandbox:
        sandbox.part_usage.record(OWN.application_id, used)
        result = await inspected(tmp_path, sandbox, application=configured, upstream=upstream_changes)
        assert sandbox.part_usage.used(OWN.application_id) == used
    assert (result.failed, result.warned) == (codes, warned)


# Where the real service may differ from the sandbox: the deviation, the plan, the configuration, and the findings.
DEVIATING: list[tuple[str, dict[str, Any], dict[str, Any], set[str], set[str]]] = [
    ("introspection", {}, {}, set(), {"introspection_refused"}),
    ("introspection-without-token", {}, {}, set(), set()),
    ("zero-search-limit", {}, {}, set(), set()),
    ("number-search-by-piece", {}, {}, set(), set()),
    ("expires-in-number", {}, {}, set(), set()),
    ("lists-without-parts", {"part_limit": 0}, {}, {"plan_without_parts"}, set()),
    ("part-limit-status", {"part_limit": 0}, {}, {"plan_without_parts"}, set()),
    ("part-limit-code", {"part_limit": 0}, {}, {"plan_without_parts"}, set()),
    ("part-limit-data", {"part_limit": 0}, {}, {"plan_without_parts"}, set()),
    ("missing-feature-path", {"features": frozenset()}, {}, {"feature_missing"}, set()),
    ("missing-feature-code", {"features": frozenset()}, {}, {"feature_missing"}, set()),
    ("wrong-secret", {}, {"client_secret": "another-secret-of-30-characters"}, {"client_refused"}, set()),
    ("token-error-status", {}, {"client_secret": "another-secret-of-30-characters"}, {"client_refused"}, set()),
    ("missing-scope-status", {"domains": ("design",)}, {"scope": ""}, {"scope_missing"}, set()),
    ("missing-scope-code", {"domains": ("design",)}, {"scope": ""}, {"token_refused"}, set()),
]


@pytest.mark.parametrize("name, plan, configured, codes, warned", DEVIATING, ids=[name for name, *_ in DEVIATING])
async def test_diagnosis_does_not_depend_on_unknown_behavior(
    upstream: StartUpstream,
    tmp_path: Path,
    name: str,
    plan: dict[str, Any],
    configured: dict[str, Any],
    codes: set[str],
    warned: set[str],
) -> None:
    configured = dict(configured)
    upstream_changes = {"scope": configured.pop("scope")} if "scope" in configured else {}
    async with upstream(dataclasses.replace(OWN, **plan), behavior=nexar_sandbox.deviate([name])) as sandbox:
        result = await inspected(tmp_path, sandbox, application=configured, upstream=upstream_changes)
    assert (result.failed, result.warned) == (codes, warned)


async def test_healthy_upstream_has_no_finding(upstream: StartUpstream, tmp_path: Path) -> None:
    async with upstream() as sandbox:
        result = await inspected(tmp_path, sandbox)
        assert sandbox.journal.totals.requests == {"token": 1, "graphql": 3}
    assert (result.failed, result.warned) == (set(), set())
    assert {stage.name for stage in result.report.stages} >= set(inspected_upstream.UPSTREAM_STAGES)
    assert [finding for _, finding in result.observed] == result.findings
