"""A person at a browser without scripts, for clients that block: signs in, allows, and stops where the sandbox ends."""

from urllib.parse import urljoin

import requests
from support import html_forms

import nexar_sandbox


class FormBrowser:
    """Minimal browser with its own cookies."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()

    def __enter__(self) -> "FormBrowser":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def allow(
        self,
        address: str,
        user: nexar_sandbox.SandboxUser = nexar_sandbox.DEFAULT_USERS[0],
        password: str = nexar_sandbox.DEFAULT_PASSWORD,
    ) -> str:
        """Follow an authorization request to the redirect with the code; sign in and consent if required."""
        answer = self._session.get(address, allow_redirects=False)
        while True:
            if answer.is_redirect:
                target = urljoin(answer.url, answer.headers["Location"])
                if not target.startswith(self._url + "/"):
                    return target
                answer = self._session.get(target, allow_redirects=False)
                continue
            form = html_forms.first_form(answer.text)
            filled = {"email": user.email, "password": password} if "password" in form.fields else {"decision": "allow"}
            fields = {**form.fields, **filled}
            answer = self._session.post(urljoin(answer.url, form.action), data=fields, allow_redirects=False)
            assert answer.is_redirect, answer.text
