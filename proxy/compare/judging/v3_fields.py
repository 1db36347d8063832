"""List of what the GraphQL API has for each field of v3's objects, read from v3_fields.yaml.

It is not made from mappings/: a mapping under test must not decide what counts.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from proxy.kit import located_yaml

FILE = Path(__file__).with_name("v3_fields.yaml")

Kind = Literal["exact", "derived", "no source"]


class V3Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field. The keys are those of the file, which explains them; `none` is UNSET where the service has something."""

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
        """The name of the object that the value, or each of its elements, is."""
        return self.is_ or self.each or self.keyed

    @property
    def kind(self) -> Kind:
        """What the service has for it."""
        if self.none is not msgspec.UNSET:
            return "no source"
        return "derived" if self.derived else "exact"

    @property
    def note(self) -> str:
        """How it is derived, or why there is none and what a client sees instead."""
        if self.kind == "no source":
            return f"{self.why}; a client sees {json.dumps(self.none)}"
        return self.derived or ""


Objects = dict[str, dict[str, V3Field]]  # by an object's name, then by a field's


@cache
def load(site: str = "octopart") -> Objects:
    """The list, with `{site}` filled in."""
    text = FILE.read_text(encoding="utf-8").replace("{site}", site)
    raw = located_yaml.loads(text, FILE.name, ValueError).data
    return {
        name: {
            field: V3Field(source=entry) if isinstance(entry, str) else msgspec.convert(entry, V3Field)
            for field, entry in fields.items()
        }
        for name, fields in raw.items()
    }
