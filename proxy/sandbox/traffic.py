"""What a sandbox has been asked so far, for tests and commands that count it."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DOCUMENTS_KEPT = 256


@dataclass(slots=True)
class Traffic:
    """How many requests came, and the last (document, variables) pairs of the query service."""

    graphql: int = 0
    tokens: int = 0
    seen: deque[tuple[str, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=DOCUMENTS_KEPT))

    def note_query(self, document: str, variables: Mapping[str, Any]) -> None:
        """A request of the query service that could be read."""
        self.graphql += 1
        self.seen.append((document, variables))

    def note_token(self) -> None:
        """A token request."""
        self.tokens += 1
