"""Rotation of signing keys: verification of older tokens and published keys."""

from typing import Any

import jwt
from support.sandbox_client import SandboxClient, StartSandbox

FREE = "{ supAttributes { id } }"


async def _get(caller: SandboxClient, path: str) -> Any:
    async with caller.session.get(caller.sandbox.url + path) as response:
        assert response.status == 200
        return await response.json()


async def _published(caller: SandboxClient) -> list[str]:
    return [key["kid"] for key in (await _get(caller, "/.well-known/openid-configuration/jwks"))["keys"]]


async def test_a_rotation_keeps_the_previous_key_valid(start: StartSandbox) -> None:
    async with start(token_windows=()) as caller:
        old, (first,) = caller.token, await _published(caller)
        rotated = (await caller.post(caller.sandbox.url + "/admin/keys")).body
        await caller.log_in()
        assert await _published(caller) == [rotated["current"], first]
        assert list(rotated["retired"]) == [first]
        assert jwt.get_unverified_header(caller.token)["kid"] == rotated["current"] != first
        assert (await caller.ask(FREE)).status == 200
        assert (await caller.ask(FREE, headers={"Authorization": f"Bearer {old}"})).status == 200


async def test_forgotten_keys_make_their_tokens_invalid_at_once(start: StartSandbox) -> None:
    async with start(token_windows=()) as caller:
        await caller.post(caller.sandbox.url + "/admin/keys")
        async with caller.session.delete(caller.sandbox.url + "/admin/keys") as response:
            left = await response.json()
        assert left == {"current": caller.sandbox.keys.current.kid, "retired": {}}
        refused = await caller.ask(FREE)
        assert refused.status == 401
        assert refused.body["errors"][0]["extensions"]["code"] == "AuthInvalidToken"
        await caller.log_in()
        assert (await caller.ask(FREE)).status == 200
