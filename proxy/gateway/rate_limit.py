"""Rate limit of API keys: so many requests in any second, over all workers. Off unless configured.

v3 limited its free tier to 3 a second (contract v3-rest.md §5). The limit saves no parts: where the store is
unavailable, it is not enforced.
"""

import math

from proxy import errors
from proxy.gateway.applications import Client
from proxy.kit.wording import counted
from proxy.stores.protocols import RateLimitStore


class RateLimits:
    """Rate limits of all API keys, counted in the store."""

    def __init__(self, store: RateLimitStore) -> None:
        self._store = store

    async def admit(self, client: Client) -> None:
        """Count a request. Raises TooManyRequests for a key that is over its limit."""
        if not client.rate:
            return
        key = client.accounts.key.name
        try:
            wait = await self._store.take(f"rate:{key}", client.rate)
        # A v3 client would rather be served than limited; the quota, which costs money, does not depend on this.
        except errors.StoreUnavailable:
            return
        if wait:
            maximum = client.rate[0].count
            raise errors.TooManyRequests(
                f"{key} may make no more than {counted(maximum, 'request')} in a second",
                retry_after=max(1, math.ceil(wait)),
            )
