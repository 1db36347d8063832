"""The new side out of a recording: the service of today, which is given recorded answers of the GraphQL service.

Whoever starts that service puts a client into it that answers from the same player. Costs no parts.
"""

from collections.abc import Mapping

import msgspec

from proxy import errors
from proxy.compare.asking import Answering
from proxy.compare.calls import Call
from proxy.compare.recorded import Recorded
from proxy.compare.replies import Reply
from proxy.upstream.taped import Player


class ReplayedSide:
    """Asks `service` with what is recorded for each call loaded. `applications` are those that it has; a call goes to
    the one that answered it then, or to the only one there is. `service` is asked with the application as client.
    """

    live = False

    def __init__(self, recorded: Recorded, service: Answering, player: Player, applications: Mapping[str, str]) -> None:
        """Raises ConfigError for a recording without answers of the GraphQL service."""
        if not recorded.upstream and not recorded.shared:
            raise errors.ConfigError(
                f"{recorded.path} holds no answers of the GraphQL service, so there is nothing to map again: "
                "they are recorded where the new side is started here, with --config"
            )
        self.place = f"{recorded.path.name}, mapped again"
        self._recorded = recorded
        self._service = service
        self._player = player
        self._applications = applications
        for noted in recorded.shared:
            player.share(noted)

    async def ask(self, call: Call, request_id: str) -> Reply:
        """The answer that the mappings of today make, or trouble where more is asked for than was recorded."""
        line = self._recorded.line(call)
        if line is None or (line.new is None and not line.upstream):
            return _trouble("has no recorded answer to this call")
        application = self._application(line.application)
        if application is None:
            return _trouble(f"has no application {line.application}, which answered when this was recorded")
        self._player.load(request_id, self._recorded.notes(line))
        try:
            reply = await self._service.ask(msgspec.structs.replace(call, client=application), request_id)
        finally:
            lacking = self._player.unload(request_id)
        return _trouble(f"has no answer: {lacking}") if lacking else msgspec.structs.replace(reply, parts=0)

    def _application(self, name: str | None) -> str | None:
        if name in self._applications:
            return name
        return next(iter(self._applications)) if len(self._applications) == 1 else None


def _trouble(words: str) -> Reply:
    return Reply(0, b"", 0.0, parts=0, trouble=words)
