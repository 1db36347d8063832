"""Tests of the source of parts for spreadsheets: which application pays, and where results are kept."""

from pathlib import Path

import msgspec
import pytest
from support import running_proxy
from together.tools.sheet import sheet_source
from together.tools.sheet.sheet_source import DIODE, FLIP_FLOP, UNKNOWN, billed, collect, fetched, opened

import nexar_sandbox
from proxy import config, errors
from proxy.kit import clock
from proxy.tools.sheet import source as sources


async def test_api_key_selects_the_application_and_is_charged(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    named = (config.ApiKeySettings(config.digest("a-key"), name="erp"),)
    demo = sheet_source.settings(sandbox, file).applications["demo"]
    other = msgspec.structs.replace(demo, apikeys=named)
    both = msgspec.structs.replace(sheet_source.settings(sandbox, file), applications={"demo": demo, "other": other})
    async with sources.open_source(both, time, apikey="a-key") as source:
        assert (source.client.application.name, source.client.key) == ("other", "erp")
    with pytest.raises(errors.ConfigError, match="several applications"):
        await sources.open_source(both, time).__aenter__()
    with pytest.raises(errors.ConfigError, match="belongs to no application") as wrong:
        await sources.open_source(both, time, apikey="wrong-key").__aenter__()
    assert "wrong-key" not in str(wrong.value)


async def test_login_of_a_workbook_is_an_application_of_its_own(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    settings = running_proxy.settings(sandbox.graphql_url, sandbox.token_url, store=f"sqlite:{file}")
    account = sandbox.default_application
    login = sources.ApplicationLogin(config.ClientId(account.client_id), config.Secret(account.client_secret))
    async with sources.open_source(settings, time, login=login) as source:
        [part] = (await fetched(source, FLIP_FLOP))[FLIP_FLOP].parts
        assert source.client.application.name == "workbook"
    assert part.manufacturer == "Texas Instruments"
    async with sources.open_source(settings, time, login=login) as source:
        await fetched(source, DIODE)
        assert sandbox.request_counts.tokens == 1
    async with sources.open_source(settings, time, login=login, refresh_login=True) as source:
        await fetched(source, UNKNOWN)
    assert sandbox.request_counts.tokens == 2


async def test_login_of_a_configured_application_keeps_its_quota(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    account = sandbox.default_application
    login = sources.ApplicationLogin(config.ClientId(account.client_id), config.Secret(account.client_secret))
    async with opened(sandbox, file, time, {"application": {"parts": 1}}, login=login) as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
    assert isinstance(error, errors.QuotaExhausted)
    assert (len(results), billed(sandbox)) == (1, 1)


async def test_wrong_credentials_end_the_run(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    login = sources.ApplicationLogin(config.ClientId("unknown"), config.Secret("a-secret-text"))
    async with opened(sandbox, file, time, login=login) as source:
        results, error = await collect(source, FLIP_FLOP)
    assert results == []
    assert isinstance(error, errors.CredentialsRefused)
    assert "a-secret-text" not in str(error)
