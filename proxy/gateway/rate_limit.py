"""How often a key may ask: so many requests in any second, over all workers. Off unless the configuration says so.

v3 held its free tier to 3 a second. Nothing is spent to keep this: where the store cannot be reached, it is not held.
"""

import math

from proxy import errors
from proxy.gateway.applications import Client
from proxy.kit.wording import counted
from proxy.stores.protocols import Store


class RateLimits:
    """The keys' limits, counted in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, client: Client) -> None:
        """Raises TooManyRequests for a key that asks more often than it may."""
        if not client.rate:
            return
        key = client.accounts.key.name
        try:
            wait = await self._store.take(f"rate:{key}", client.rate)
        except errors.StoreUnavailable:
            return
        if wait:
            most = client.rate[0].count
            raise errors.TooManyRequests(
                f"{key} may make no more than {counted(most, 'request')} in a second",
                retry_after=max(1, math.ceil(wait)),
            )
