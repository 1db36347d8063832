"""A sign-in with OpenID Connect in a browser; its identity provider is the sandbox, as another site."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from support import running_admin, running_proxy
from together.browser.background import Background
from together.browser.console import read_console

import nexar_sandbox
from proxy import config

PATIENCE = 20
ADA = nexar_sandbox.DEFAULT_USERS[0].email


@asynccontextmanager
async def admin_with_oidc() -> AsyncIterator[running_admin.AdminClient]:
    """An admin interface at 127.0.0.1, and its identity provider at localhost: for browsers another site."""
    async with running_admin.running(running_proxy.settings("http://127.0.0.1:9/g", "http://127.0.0.1:9/t")) as admin:
        application = dataclasses.replace(
            nexar_sandbox.DEFAULT_DESIGN_APPLICATION, redirect_uris=(f"{admin.url}/sign-in/oidc/return",)
        )
        async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings(applications=(application,))) as sandbox:
            oidc = config.OidcSettings(
                issuer=config.SecureUrl(sandbox.url.replace("127.0.0.1", "localhost")),
                client_id=config.ClientId(application.client_id),
                client_secret=config.Secret(application.client_secret),
                public_url=config.SecureUrl(admin.url),
                operators=(ADA,),
                role_claim="email",
            )
            gateway = admin.service.gateway
            settings = msgspec.structs.replace(running_admin.SETTINGS, oidc=oidc)
            changed = msgspec.structs.replace(gateway.settings, admin=settings)
            admin.service.gateway = dataclasses.replace(gateway, settings=changed)
            yield admin


def test_operator_signs_in_with_the_account_of_the_identity_provider(
    browser: webdriver.Chrome, background: Background
) -> None:
    admin = background.enter(admin_with_oidc())

    def until(title: str) -> None:
        WebDriverWait(browser, PATIENCE).until(lambda page: title in page.title, f"{title!r} does not come")

    browser.get(f"{admin.url}/audit?page=1")
    until("Sign in · v3bridge")
    browser.find_element(By.ID, "oidc").click()
    until("Sign in")
    WebDriverWait(browser, PATIENCE).until(lambda page: page.find_elements(By.ID, "email"))
    assert "//localhost:" in browser.current_url
    browser.switch_to.active_element.send_keys(ADA, Keys.TAB, nexar_sandbox.DEFAULT_PASSWORD, Keys.ENTER)
    until("Allow")
    browser.find_element(By.CSS_SELECTOR, "button.primary").click()
    until("Audit · v3bridge")
    assert browser.current_url == f"{admin.url}/audit?page=1"
    assert f"operator {ADA}, session " in browser.find_element(By.ID, "main").text
    browser.find_element(By.CSS_SELECTOR, ".sign-out button").click()
    until("Sign in · v3bridge")
    assert [line["message"] for line in read_console(browser) if "Policy" in line["message"]] == []
