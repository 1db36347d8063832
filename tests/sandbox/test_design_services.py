"""The design services behind the query service: internal access only, batched requests, one set per sandbox."""

import json

import yarl
from sandbox.design_client import DesignClient

from nexar_sandbox.design import rest


async def test_design_services_reject_public_tokens(designer: DesignClient) -> None:
    assert set(designer.sandbox.design_urls) == {"workspaces", "library", "projects", "collaboration"}
    own = {yarl.URL(url).port for url in designer.sandbox.design_urls.values()}
    assert len(own | {designer.sandbox.port}) == 5
    tries: tuple[dict[str, str], ...] = (
        {},
        {"Authorization": f"Bearer {designer.token}"},
        {"token": designer.token},
        {rest.CREDENTIAL: designer.token},
        {rest.CREDENTIAL: ""},
    )
    paths = {"workspaces": "/users", "library": "/components", "projects": "/projects", "collaboration": "/events"}
    for name, url in designer.sandbox.design_urls.items():
        for headers in tries:
            for method, path in (("GET", paths[name]), ("POST", paths[name]), ("GET", "/nothing")):
                async with designer.session.request(method, url + path, headers=headers) as response:
                    assert response.status == 401
                    assert json.loads(await response.read()) == {
                        "error": "this service accepts requests of the query service only"
                    }
