"""Every page of the admin interface: HTML, its JSON, and the navigation. New pages are covered by themselves."""

import pytest
from support import running_admin
from together.environment import ProxyEnvironment

from proxy import __version__
from proxy.web.admin import pages
from proxy.web.admin.page import AdminPage

PAGES = pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.name))


@PAGES
async def test_page_has_its_title_and_is_marked_in_the_navigation(
    admin: running_admin.AdminClient, page: AdminPage
) -> None:
    html = await admin.page(page.url)
    assert f"<h1>{page.title}</h1>" in html
    assert html.count('aria-current="page"') == 1
    assert f'<a href="{page.url}" aria-current="page">{page.title}</a>' in html
    assert all(f'href="{each.url}"' in html for each in pages.PAGES)
    assert f'href="/{page.name}.json"' in html


@PAGES
async def test_json_has_the_fields_of_the_page(admin: running_admin.AdminClient, page: AdminPage) -> None:
    assert set(await admin.json(f"/{page.name}.json")) == set(page.struct.__struct_fields__)


@PAGES
async def test_template_has_no_inline_style_or_script(admin: running_admin.AdminClient, page: AdminPage) -> None:
    html = await admin.page(page.url)
    assert "style=" not in html
    assert "<style" not in html
    assert "javascript:" not in html
    assert html.count("<script") == 1


async def test_overview_has_the_address_of_its_name(admin: running_admin.AdminClient) -> None:
    assert "<h1>Overview</h1>" in await admin.page("/overview")
    signed_in = await admin.sign_in(target="/overview")
    assert signed_in.headers["Location"] == "/overview"


async def test_pages_are_shown_in_no_frame(admin: running_admin.AdminClient) -> None:
    for path in ("/", "/sign-in", "/no/such/page", "/overview.json"):
        policy = (await admin.send("GET", path, headers=running_admin.PAGE)).headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy.split("; ")


async def test_overview_shows_version_and_uptime(managed: ProxyEnvironment) -> None:
    managed.time.advance(3_700)
    assert "1 h 1 min" in await managed.admin.page("/")
    overview = await managed.admin.json("/overview.json")
    assert (overview["version"], overview["uptime_seconds"]) == (__version__, 3_700)


async def test_health_readiness_and_metrics_need_no_token(admin: running_admin.AdminClient) -> None:
    responses = [await admin.send("GET", path) for path in ("/healthz", "/readyz", "/metrics")]
    assert [response.status for response in responses] == [200, 200, 200]
    assert "v3bridge_requests_total" in await responses[2].text()
