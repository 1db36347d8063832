"""Mapping functions of a program: those that mapping/compiler.py writes for a projection, to dicts instead of structs.

The rules are so translated in one place only: a program cannot understand a rule differently from the proxy.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.explain.programs import printer
from proxy.mapping.source import CONTEXT, ObjectSource, Source
from proxy.model import MappingContext, Path

REQUESTED_UID = "requested_uid"  # what a mapping knows of a request; a program has it as a parameter

_CONTEXT = re.compile(rf"\b{CONTEXT}\.(\w+)")
_CONSTANT = re.compile(r"\bCONSTANT_\d+\b")


class ProgramSource(Source):
    """Source of the functions of a program, with the slices and settings of a request's context."""

    def __init__(self, name: str, context: MappingContext) -> None:
        super().__init__(name)
        self._context = context

    def literal(self, value: Any) -> str:
        return printer.literal(without_class(value))

    def cut(self, path: Path) -> str:
        ends = self._context.cuts[path]
        start, stop = ("" if end is None else end for end in (ends.start, ends.stop))
        return f"[{start}:{stop}]"

    def in_order(self, pairs: str) -> str:
        return f"ranked({pairs})"

    def call(self, name: str, arguments: Mapping[str, str], source: ObjectSource) -> str:
        if not source.fields:
            return "{}"
        own = {parameter: value for parameter, value in arguments.items() if parameter != CONTEXT}
        return super().call(name, own | {REQUESTED_UID: REQUESTED_UID}, self._with_settings(source))

    def entry_point(self, name: str, record: str, source: ObjectSource) -> None:
        source = self._with_settings(source)
        # Of the context only the requested uid differs between the records of one program.
        needs_uid = any(re.search(rf"\b{REQUESTED_UID}\b", each) for each in source.fields.values())
        self.add_entry(name, (record, REQUESTED_UID) if needs_uid else (record,), source)

    def _with_settings(self, source: ObjectSource) -> ObjectSource:
        """Replace what functions read of the context. No expression has text of a client yet."""
        return ObjectSource(None, {field: _CONTEXT.sub(self._setting, each) for field, each in source.fields.items()})

    def _setting(self, name: re.Match[str]) -> str:
        if name[1] != REQUESTED_UID:
            return name[1].upper()  # a constant of the program
        return REQUESTED_UID if self._context.requested_uid else "None"

    def _function(self, name: str, parameters: Iterable[str], source: ObjectSource) -> str:  # noqa: ARG002 - no struct
        fields = (f'        "{field}": {self._with_constants(each)},\n' for field, each in source.fields.items())
        return f"({', '.join(parameters)}):\n    return {{\n{''.join(fields)}    }}\n"

    def _with_constants(self, expression: str) -> str:
        return _CONSTANT.sub(lambda name: _listed(self._constants[name[0]]), expression)


def _listed(constant: Any) -> str:
    return printer.literal(constant if isinstance(constant, str) else sorted(constant))


def without_class(value: Any) -> Any:
    """Return a JSON value without `__class__`, which tells a program nothing that it does not know."""
    if isinstance(value, dict):
        return {key: without_class(each) for key, each in value.items() if key != "__class__"}
    return [without_class(each) for each in value] if isinstance(value, list) else value
