"""Redaction of results: a user sends them in, so they hold no credentials, no tokens and nothing of an organization."""

import re
from collections.abc import Collection
from typing import Any

import msgspec

from proxy.redaction import HIDDEN, Redaction
from proxy.tools import json_texts
from proxy.tools.conform.results import Outcome

# Ids of applications, organizations, users and requests are GUIDs.
_PATTERNS = re.compile(
    r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"  # a GUID
    r"|eyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?"  # a JSON Web Token
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an e-mail address
)
# In messages of the service, which users should read as they are.
_PUBLIC = ("api@nexar.com",)


class ResultRedaction:
    """Redaction of outcomes. `secrets` are hidden wherever they occur, GUIDs, tokens and e-mail addresses always."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._known = Redaction(secrets)

    def outcome(self, outcome: Outcome) -> Outcome:
        """Redact an outcome."""
        return msgspec.structs.replace(outcome, got=self.value(outcome.got), reason=self.text(outcome.reason))

    def text(self, text: str) -> str:
        """Redact a text."""
        return _PATTERNS.sub(_hidden, self._known.text(text))

    def value(self, value: Any) -> Any:
        """Redact the texts in a JSON value."""
        return json_texts.changed(value, self.text, names=True)


def _hidden(match: re.Match[str]) -> str:
    return match[0] if match[0] in _PUBLIC else HIDDEN
