"""Evidence of live traffic: a proxy on a sandbox that deviates, from its exchanges to the store and `conform`."""

import json
import time as system_time
from pathlib import Path

import pytest
from support import commands, running_proxy
from together.environment import StartEnvironment

import nexar_sandbox
from proxy import config
from proxy.evidence import records
from proxy.evidence.records import TrafficEvidence
from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.kit.wording import rfc3339
from proxy.stores import open as opening
from proxy.tools.conform import command as conform

SERVICE = "another service"  # than Nexar's
SECRETS = (
    nexar_sandbox.DEFAULT_APPLICATION.client_id,
    nexar_sandbox.DEFAULT_APPLICATION.client_secret,
    nexar_sandbox.DEFAULT_APPLICATION.application_id,
    nexar_sandbox.DEFAULT_ORGANIZATION.id,
    running_proxy.KEY,
    "eyJ",  # every token begins so
)


async def _stored(gateway: Gateway) -> TrafficEvidence:
    assert gateway.evidence is not None
    await gateway.evidence.judge()
    return (await records.stored(gateway.store, gateway.clock.now()))[SERVICE]


async def test_live_exchanges_are_held_against_the_assumptions(start: StartEnvironment) -> None:
    behavior = nexar_sandbox.deviate(["token-lifetime", "stock-codes"])
    async with start(sandbox={"behavior": behavior}, admin=True, evidence={"share": 1.0}) as environment:
        for number in ("SN74S74N", "sn74s74n", "MBR1020VL", "no-such-part-number-0"):
            await environment.results({"mpn": number, "limit": 3}, more="&include[]=specs")
        seen = await _stored(environment.admin.service.gateway)
        shown, page = await environment.admin.json("/schema.json"), await environment.admin.page("/schema")
        notes = str(await environment.admin.service.gateway.store.notes(records.NOTE))
    assert {each.id for each in seen.contradicted} == {"token-lifetime", "stock-codes"}
    confirmed = {each.id for each in seen.observed if not each.contradicting}
    assert {"token-type", "accepted-token", "price-order", "match-case", "uid-form"} <= confirmed
    assert seen.exchanges >= 5  # a token, and a request for each number
    assert not [secret for secret in SECRETS if secret in notes]
    (evidence,) = shown["evidence"]
    assert (evidence["service"], evidence["exchanges"]) == (SERVICE, seen.exchanges)
    assert [each["id"] for each in evidence["contradicted"]] == [each.id for each in seen.contradicted]
    assert all(each.statement in page for each in seen.contradicted)


async def test_a_sandbox_that_keeps_the_assumptions_contradicts_none(start: StartEnvironment) -> None:
    async with start(admin=True, evidence={"share": 1.0}) as environment:
        await environment.results({"mpn": "MBR1020VL", "limit": 3}, {"mpn": "SN74S74N"}, more="&include[]=specs")
        seen = await _stored(environment.admin.service.gateway)
    assert seen.contradicted == ()
    assert len(seen.observed) > 20


async def test_nothing_is_sampled_unless_it_is_configured(start: StartEnvironment) -> None:
    async with start(admin=True) as environment:
        assert environment.admin.service.gateway.evidence is None


@pytest.fixture
async def configured(tmp_path: Path) -> Path:
    """A configuration whose store has evidence of today."""
    url = f"sqlite:{tmp_path}/store.sqlite"
    file = tmp_path / "our.yaml"
    demo = {"client_id": "3d1b6c1e-1111-4111-8111-111111111111", "client_secret": "secret", "apikeys": ["A-KEY"]}
    upstream = {
        "graphql_url": "https://api.nexar.com/graphql",
        "token_url": "https://identity.nexar.com/connect/token",
    }
    file.write_text(json.dumps({"store": url, "upstream": upstream, "applications": {"demo": demo}}))
    file.chmod(0o600)
    now = system_time.time()
    at = rfc3339(now)
    lifetime = records.ObservedAssumption(
        "token-lifetime", "complete", "", "", 7, 7, at, at, at, ("d1",), '{"seconds": 3600}', at
    )
    codes = records.ObservedAssumption("stock-codes", "core", "", "", 40, 0, at, at)
    store = await opening.open_store(config.StoreUrl(url), clock.SystemClock())
    await records.add(store, "a", {"Nexar": TrafficEvidence(50, (lifetime, codes))}, now)
    await store.aclose()
    return file


async def test_conform_reads_what_the_service_has_kept(configured: Path, tmp_path: Path) -> None:
    arguments = ("conform", "--from", "evidence", "--config", str(configured))
    done = await commands.wait(
        await commands.start(tmp_path, *arguments, "--json", "--update", str(tmp_path / "seen.yaml"))
    )
    assert done.code == conform.CONTRADICTED, done
    result = json.loads(done.out)
    assert (result["service"], result["exchanges"]) == ("Nexar", 50)
    # What nexar-sandbox --as imitates.
    assert result["behavior"] == {"token_lifetime": 3600}
    page = (tmp_path / "seen.md").read_text()
    assert "observed in 40 exchanges, last" in page
    assert "contradicted: observed in 7 exchanges, last" in page


async def test_conform_says_what_is_missing(tmp_path: Path) -> None:
    done = await commands.wait(await commands.start(tmp_path, "conform", "--from", "evidence"))
    assert (done.code, "upstream: sandbox" in done.err) == (2, True)
    done = await commands.wait(await commands.start(tmp_path, "conform", "--from", "evidence", "--from", "x.json"))
    assert "evidence is read by itself" in done.err
