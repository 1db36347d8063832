"""Forms of the portal and their fields: declared in forms.toml, rendered by `templates/portal/form.html`. Pure."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from nexar_sandbox import applications, pages


class MistakeError(Exception):
    """A form cannot be saved: the name of the field, and the message beside it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input. `kind` is `lines` (a text area with one value per line) or the type of an HTML input. Checkboxes are
    named `name-key`, with the keys of `choices`. `noun` is what messages call the value; `check` is what a text has to
    be."""

    name: str
    label: str
    noun: str = ""
    kind: Literal["text", "lines", "checkbox", "radio"] = "text"
    required: bool = True
    longest: int = 100
    hint: str = ""
    choices: dict[str, str] = {}
    check: Literal["", "uri", "parts"] = ""

    def parse(self, form: Mapping[str, str]) -> Any:
        """Return the key of the choice, the keys of the checked boxes, the lines without duplicates, or the stripped
        text. Raises MistakeError."""
        text = form.get(self.name, "")
        if self.kind == "checkbox":
            return self._boxes(form)
        if self.kind == "radio":
            return self._choice(text)
        if self.kind == "lines":
            return tuple(dict.fromkeys(self._text(line.strip()) for line in text.split("\n") if line.strip()))
        return self._text(text.strip())

    def _boxes(self, form: Mapping[str, str]) -> tuple[str, ...]:
        keys = tuple(key for key in self.choices if form.get(f"{self.name}-{key}"))
        if self.required and not keys:
            raise MistakeError(self.name, f"Choose {self.noun}.")
        return keys

    def _choice(self, key: str) -> str:
        if key not in self.choices:
            raise MistakeError(self.name, f"There is no {self.noun} {key!r}." if key else f"Choose a {self.noun}.")
        return key

    def _text(self, text: str) -> str:
        message = _ERRORS[self.check](text) if text and self.check else ""
        if self.required and not text:
            message = f"{self.noun} is missing."
        elif len(text) > self.longest:
            message = f"{self.noun} has {len(text)} characters; the limit is {self.longest}."
        # A description may have several lines.
        elif not text.replace("\r\n", " ").replace("\n", " ").isprintable():
            message = f"{self.noun} contains invisible characters."
        if message:
            raise MistakeError(self.name, message)
        return text


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of fields, and texts, of a form on a page of its own. `{name}` in texts is what the form is about."""

    title: str
    submit: str
    field_names: tuple[str, ...] = ()
    text: str = ""
    note: str = ""

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(FIELDS[name] for name in self.field_names)


def parse(fields: tuple[Field, ...], form: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Parse the fields of a form: values by name, with `_` for `-`, and messages by name."""
    values: dict[str, Any] = {}
    mistakes: dict[str, str] = {}
    for declared in fields:
        try:
            values[declared.name.replace("-", "_")] = declared.parse(form)
        except MistakeError as mistake:
            mistakes[declared.name] = str(mistake)
    return values, mistakes


def _uri_error(text: str) -> str:
    if applications.is_absolute_uri(text):
        return ""
    return f"{text!r} is not an absolute URL without a fragment, such as http://localhost:3000/login."


def _parts_error(text: str) -> str:
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= applications.MAX_PARTS:
        return ""
    return f"Parts are a number from 0 to {applications.MAX_PARTS}, not {text[:50]!r}."


def _plan_label(plan: applications.SandboxPlan) -> str:
    features = "features as below" if plan.add_ons else "no paid features"
    features = "all features" if plan.features == applications.FEATURES else features
    period = "a month" if plan.period == "month" else "for a lifetime"
    return f"{plan.name}: {pages.format_number(plan.parts)} parts {period}, {features}"


_ERRORS: dict[str, Callable[[str], str]] = {"uri": _uri_error, "parts": _parts_error}


class _Table(msgspec.Struct, frozen=True):
    fields: tuple[Field, ...]
    forms: dict[str, Form]


_TABLE = msgspec.toml.decode(Path(__file__).with_name("forms.toml").read_bytes(), type=_Table)
# Choices that are data of other modules.
_CHOICES = {
    "plan": {key: _plan_label(plan) for key, plan in applications.PLANS.items()},
    "add-on": {feature: applications.FEATURE_NAMES[feature] for feature in applications.PLANS["pro"].add_ons},
}
FIELDS = {
    field.name: msgspec.structs.replace(field, choices=_CHOICES.get(field.name, field.choices))
    for field in _TABLE.fields
}
FORMS = _TABLE.forms
