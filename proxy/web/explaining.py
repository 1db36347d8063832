"""Explanations in the running service: admin interface and traces. The explainer is imported on first use."""

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from proxy.gateway.assembly import Gateway

if TYPE_CHECKING:
    from proxy.explain.explainer import Explainer

T = TypeVar("T")


class Explaining:
    """Explains with the configuration and mappings of the gateway that serves."""

    def __init__(self) -> None:
        self._gateway: Gateway | None = None
        self._explainer: Explainer | None = None
        self._lock = threading.Lock()  # an explainer keeps compiled documents, and is not made for several threads

    async def run(self, gateway: Gateway, work: "Callable[[Explainer], T]") -> T:
        """Return what `work` does with the explainer."""
        # In a thread: documents are compiled and printed, which would delay the requests of this worker.
        return await asyncio.to_thread(self._run, gateway, work)

    def _run(self, gateway: Gateway, work: "Callable[[Explainer], T]") -> T:
        from proxy.explain.explainer import Explainer

        with self._lock:
            if self._explainer is None or self._gateway is not gateway:
                self._gateway = gateway
                self._explainer = Explainer(gateway.settings, gateway.mappings)
            return work(self._explainer)
