"""Resources that several users share: opened once for a key, and closed after the last of them."""

from contextlib import AsyncExitStack

import pytest

from proxy.gateway.process import SharedResources


class Opened:
    """Opens resources, and notes which are open."""

    def __init__(self) -> None:
        self.count = 0
        self.open: list[int] = []

    async def __call__(self, closing: AsyncExitStack) -> int:
        self.count += 1
        self.open.append(self.count)
        closing.callback(self.open.remove, self.count)
        return self.count


async def test_equal_keys_share_a_resource_until_the_last_user_is_gone() -> None:
    shared, opened = SharedResources(), Opened()
    first, second = AsyncExitStack(), AsyncExitStack()
    assert await shared.obtain(("a", 1), first, opened) == await shared.obtain(("a", 1), second, opened) == 1
    assert await shared.obtain(("a", 2), second, opened) == 2
    await first.aclose()
    assert opened.open == [1, 2]
    await second.aclose()
    assert opened.open == []
    assert await shared.obtain(("a", 1), first, opened) == 3


async def test_what_a_failed_start_has_opened_is_closed() -> None:
    shared, opened = SharedResources(), Opened()

    async def fail(closing: AsyncExitStack) -> int:
        await opened(closing)
        raise OSError

    async with AsyncExitStack() as user:
        with pytest.raises(OSError):  # noqa: PT011 - it has no message
            await shared.obtain("a", user, fail)
        assert opened.open == []
        assert await shared.obtain("a", user, opened) == 2
