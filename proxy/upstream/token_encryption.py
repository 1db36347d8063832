"""Tokens encrypted in the store, where `store_key` is set (Fernet: AES-128-CBC with HMAC-SHA256).

The first key encrypts, all of them decrypt, so that a key can be changed while several machines run. A token that no
key decrypts is as if there were none: another is asked for.
"""

from collections.abc import Sequence

import structlog
from cryptography import fernet

from proxy import config
from proxy.kit import windows
from proxy.upstream.token_store import TokenStore

MARK = "fernet:"  # begins what is encrypted

log = structlog.get_logger()


class EncryptedTokens:
    """A store whose tokens are encrypted. Without keys they are plain, and those that are encrypted are ignored."""

    def __init__(self, store: TokenStore, keys: Sequence[config.StoreKey]) -> None:
        self._store = store
        self._keys = fernet.MultiFernet([fernet.Fernet(key.reveal()) for key in keys]) if keys else None
        self._told = False

    async def take(self, key: str, limits: Sequence[windows.Window]) -> float:
        return await self._store.take(key, limits)

    async def token(self, key: str) -> tuple[str, float] | None:
        found = await self._store.token(key)
        if found is None or (text := self._decrypted(found[0])) is None:
            return None
        return text, found[1]

    async def keep_token(self, key: str, token: str, expires: float) -> None:
        text = token if self._keys is None else MARK + self._keys.encrypt(token.encode()).decode()
        await self._store.keep_token(key, text, expires)

    async def drop_token(self, key: str, token: str) -> None:
        """Encrypted twice, a text looks different: what is dropped is what stands there, if that is this token."""
        found = await self._store.token(key)
        if found is not None and self._decrypted(found[0]) == token:
            await self._store.drop_token(key, found[0])

    async def cooldown(self, key: str) -> str | None:
        return await self._store.cooldown(key)

    async def start_cooldown(self, key: str, reason: str, until: float) -> None:
        await self._store.start_cooldown(key, reason, until)

    async def lock(self, name: str, owner: str, seconds: float) -> bool:
        return await self._store.lock(name, owner, seconds)

    async def unlock(self, name: str, owner: str) -> None:
        await self._store.unlock(name, owner)

    def _decrypted(self, text: str) -> str | None:
        """None for what was encrypted with another key, or not at all where keys are set."""
        if self._keys is None and not text.startswith(MARK):
            return text
        try:
            if self._keys is not None and text.startswith(MARK):
                return self._keys.decrypt(text.removeprefix(MARK)).decode()
        except fernet.InvalidToken:
            pass
        if not self._told:
            self._told = True
            log.warning("stored token ignored", reason="no store_key decrypts it; a new token is requested")
        return None
