"""State that the service keeps in the store, as far as the stages before the stage store use it.

Nothing of it is needed: where the store cannot be used, there is no stored state, and the stage store says why. A file
that does not exist is not made: it would belong to whoever runs the check.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from proxy import errors
from proxy.doctor.inspection import Inspection
from proxy.gateway.core import StoredState

T = TypeVar("T")


async def use(inspection: Inspection, work: Callable[[StoredState], Awaitable[T]], default: T) -> T:
    """Return what `work` does with the stored state, or the default where the store cannot be used."""
    if not inspection.has_tried_store:
        inspection.has_tried_store = True
        inspection.state = await _open(inspection)
    if inspection.state is None:
        return default
    try:
        return await work(inspection.state)
    except errors.StoreUnavailable as error:
        # Not tried again: each attempt may last until a timeout.
        inspection.state, inspection.store_error = None, error
        return default


async def _open(inspection: Inspection) -> StoredState | None:
    try:
        state = await StoredState.open_existing(inspection.settings, inspection.clock, inspection.environ)
    except errors.BridgeError:
        return None
    if state is not None:
        inspection.resources.push_async_callback(state.aclose)
    return state
