"""What pages and actions of the admin interface work on."""

from dataclasses import dataclass, field

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.web.admin.explaining import Explaining
from proxy.web.service import RunningService


@dataclass(frozen=True, slots=True)
class AdminContext:
    """Dependencies of pages and actions. `started`: when this process began to serve, in seconds since 1970."""

    service: RunningService
    clock: Clock
    started: float
    explaining: Explaining = field(default_factory=Explaining)

    async def reload(self) -> config.ReloadResult:
        """Read the configuration anew, for all workers. Raises BadRequest where the program that runs the service
        cannot."""
        if self.service.reload is None:
            raise errors.BadRequest("this service was started without a configuration file that could be read anew")
        return await self.service.reload()

    @property
    def last_reload(self) -> config.ReloadResult | None:
        """The result of the last reload; None before the first."""
        return self.service.last_reload
