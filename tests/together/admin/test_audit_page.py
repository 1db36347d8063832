"""The audit log: every action with who, when, what, from where and its result, as page, JSON and CSV."""

import csv
import io
import re
from typing import Any

import pytest
from support import html_forms
from support.running_admin import BEARER, PAGE, READ_TOKEN, TOKEN, AdminClient
from together.environment import ProxyEnvironment

from proxy import errors
from proxy.stores.protocols import AuditEntry
from proxy.web.admin.pages import audit


async def entries(admin: AdminClient) -> list[dict[str, Any]]:
    return list((await admin.json("/audit.json"))["entries"])


async def test_actions_of_scripts_and_sessions_are_recorded_with_their_results(managed: ProxyEnvironment) -> None:
    admin, begin = managed.admin, managed.time.now()
    await admin.act("/cache/clear")
    managed.time.advance(5)
    elsewhere = BEARER | {"X-Forwarded-For": "192.0.2.7"}
    await admin.send("POST", "/quota/reconcile", headers=elsewhere, data={"application": "demo"})
    await admin.sign_in()
    form = html_forms.first_form(await (await admin.send("GET", "/", headers=PAGE)).text())
    await admin.send("POST", "/cache/clear", headers=PAGE, data=form.fields)
    await admin.submit("/", "/sign-out")
    signed_out, cleared, signed_in, refused, first = await entries(admin)
    assert first == {
        "at": begin,
        "who": "operator, token",
        "address": "127.0.0.1",
        "action": "/cache/clear",
        "parameters": "",
        "result": first["result"],
    }
    assert first["result"].startswith("The cache of all applications is cleared: 0 entries")
    assert {**refused, "result": ""} == {
        "at": begin + 5,
        "who": "operator, token",
        "address": "192.0.2.7",
        "action": "/quota/reconcile",
        "parameters": "application=demo",
        "result": "",
    }
    assert refused["result"] == "refused: demo has no `reconcile` block in the configuration"
    whos = {each["who"] for each in (signed_out, cleared, signed_in)}
    assert len(whos) == 1
    assert re.fullmatch("operator, session [0-9a-f]{8}", whos.pop())
    assert [each["action"] for each in (signed_out, cleared, signed_in)] == ["/sign-out", "/cache/clear", "/sign-in"]


async def test_reading_signing_in_to_read_and_wrong_tokens_are_no_actions(admin: AdminClient) -> None:
    await admin.sign_in(READ_TOKEN)
    await admin.submit("/", "/sign-out")
    await admin.sign_in("wrong")
    await admin.send("POST", "/cache/clear", headers={"Authorization": f"Bearer {READ_TOKEN}"})
    await admin.page("/cache")
    assert await entries(admin) == []
    assert "No operator has done anything yet." in await admin.page("/audit")


async def test_entries_hold_no_keys_and_no_tokens_and_are_cut(admin: AdminClient) -> None:
    for application in ("EXAMPLE_KEY", "x" * 5_000, "a\x1b[31m<b>"):
        await admin.send("POST", "/quota/reopen", headers=BEARER, data={"application": application, "csrf": TOKEN})
    escape, long, key = [each["parameters"] for each in await entries(admin)]
    assert (key, long, escape) == ("application=…", "application=" + "x" * 100, "application=a\\x1b[31m<b>")
    html = await admin.page("/audit")
    assert ("[31m&lt;b&gt;" in html, TOKEN in html, "EXAMPLE_KEY" in html) == (True, False, False)


async def test_csv_has_every_action_and_no_formulas(admin: AdminClient) -> None:
    store = admin.service.gateway.store
    for number in range(audit.ROWS + 1):
        await store.add_audit_entry(AuditEntry(number, "operator, token", "::1", "/cache/clear", "=1+1", str(number)))
    response = await admin.send("GET", "/audit.csv", headers=BEARER)
    assert response.content_type == "text/csv"
    head, first, *rows = csv.reader(io.StringIO(await response.text()))
    assert head == list(audit.CSV_COLUMNS)
    assert first == ["1970-01-01T00:01:40Z", "operator, token", "::1", "/cache/clear", "'=1+1", "100"]
    assert len(rows) == audit.ROWS
    page, last = await admin.json("/audit.json"), await admin.json("/audit.json?page=2")
    assert (len(page["entries"]), page["has_more"]) == (audit.ROWS, True)
    assert ([each["result"] for each in last["entries"]], last["has_more"]) == (["0"], False)
    assert 'href="/audit?page=2"' in await admin.page("/audit")
    assert (await admin.send("GET", "/audit.json?page=0", headers=BEARER)).status == 400


async def test_action_is_done_and_logged_while_the_store_cannot_take_it(
    admin: AdminClient, monkeypatch: pytest.MonkeyPatch, log_output: io.StringIO
) -> None:
    async def fail(*_: object) -> None:
        raise errors.StoreUnavailable("the disk is full")

    store = admin.service.gateway.store
    monkeypatch.setattr(store, "add_audit_entry", fail)
    monkeypatch.setattr(store, "audit_entries", fail)
    assert await admin.act("/cache/clear")
    assert "audit entry lost" in log_output.getvalue()
    assert (await admin.json("/audit.json"))["store_failure"] == "the disk is full"
    assert "the disk is full" in await (await admin.send("GET", "/audit", headers=BEARER | PAGE)).text()
