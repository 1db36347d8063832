"""List of the GraphQL sources of each field of v3's objects, read from v3_fields.yaml.

It is not derived from mappings/: the mappings under test must not decide what counts.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from proxy.kit import located_yaml

SITE = "octopart"  # default; it is part of a field's name, and does not influence a judgement
FILE = Path(__file__).with_name("v3_fields.yaml")

Kind = Literal["exact", "derived", "no source"]


class V3Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry of a field. The keys are documented in the file; `none` is UNSET where the API has a source."""

    source: str = msgspec.field(name="from", default="")
    is_: str | None = msgspec.field(name="is", default=None)
    each: str | None = None
    keyed: str | None = None
    derived: str | None = None
    plan: str | None = None
    none: Any = msgspec.UNSET
    why: str = ""

    @property
    def target(self) -> str | None:
        """Name of the object type of the value or of its elements; None for scalars."""
        return self.is_ or self.each or self.keyed

    @property
    def kind(self) -> Kind:
        """Kind of the source: exact, derived or "no source"."""
        if self.none is not msgspec.UNSET:
            return "no source"
        return "derived" if self.derived else "exact"

    @property
    def note(self) -> str:
        """Derivation of the value, or the reason why there is no source and the value that clients get instead."""
        if self.kind == "no source":
            return f"{self.why}; a client sees {json.dumps(self.none)}"
        return self.derived or ""


Objects = dict[str, dict[str, V3Field]]  # by object name, then by field name


@cache
def load(site: str = SITE) -> Objects:
    """Load the list, with `{site}` substituted."""
    text = FILE.read_text(encoding="utf-8").replace("{site}", site)
    raw = located_yaml.loads(text, FILE.name, ValueError).data
    return {
        name: {
            field: V3Field(source=entry) if isinstance(entry, str) else msgspec.convert(entry, V3Field)
            for field, entry in fields.items()
        }
        for name, fields in raw.items()
    }
