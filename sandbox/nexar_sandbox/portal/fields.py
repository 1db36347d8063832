"""Forms of the portal and their fields: declared here once, rendered by `templates/portal/form.html`. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nexar_sandbox import applications, pages, plans, user_directory

SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 200


class MistakeError(Exception):
    """A form cannot be saved: the name of the field, and the message beside it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Field:
    """An input. `kind` is `lines` (a text area with one value per line) or the type of an HTML input. Checkboxes are
    named `name-key`, with the keys of `choices`. `noun` is what messages call the value; `check` returns the message
    for a text, or ""."""

    name: str
    label: str
    noun: str = ""
    kind: str = "text"
    required: bool = True
    longest: int = 100
    hint: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[str], str] = lambda _: ""

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
        return self._password(text) if self.kind == "password" else self._text(text.strip())

    def _boxes(self, form: Mapping[str, str]) -> tuple[str, ...]:
        keys = tuple(key for key in self.choices if form.get(f"{self.name}-{key}"))
        if self.required and not keys:
            raise MistakeError(self.name, f"Choose {self.noun}.")
        return keys

    def _choice(self, key: str) -> str:
        if key not in self.choices:
            raise MistakeError(self.name, f"There is no {self.noun} {key!r}." if key else f"Choose a {self.noun}.")
        return key

    def _password(self, text: str) -> str:
        if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD:
            raise MistakeError(self.name, f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
        return text

    def _text(self, text: str) -> str:
        message = self.check(text) if text else ""
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


class Form(NamedTuple):
    """Fields and texts of a form on a page of its own. `{name}` in texts is what the form is about."""

    title: str
    submit: str
    fields: tuple[Field, ...] = ()
    text: str = ""
    note: str = ""
    danger: bool = False


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


def _email_error(text: str) -> str:
    return "" if user_directory.EMAIL_ADDRESS.fullmatch(text) else f"{text!r} is not an e-mail address."


def _uri_error(text: str) -> str:
    if applications.is_absolute_uri(text):
        return ""
    return f"{text!r} is not an absolute URL without a fragment, such as http://localhost:3000/login."


def _parts_error(text: str) -> str:
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= plans.MAX_PARTS:
        return ""
    return f"Parts are a number from 0 to {plans.MAX_PARTS}, not {text[:50]!r}."


def _plan_label(plan: plans.SandboxPlan) -> str:
    features = "features as below" if plan.add_ons else "no paid features"
    features = "all features" if plan.features == applications.FEATURES else features
    period = "a month" if plan.period == "month" else "for a lifetime"
    return f"{plan.name}: {pages.format_number(plan.parts)} parts {period}, {features}"


FLOWS = {
    applications.CLIENT_CREDENTIALS: "Client credentials: the application requests tokens for itself",
    applications.AUTHORIZATION_CODE: "Authorization code: users sign in and consent",
    applications.PASSWORD: "Password: the application sends users' passwords",
}

NAME = Field("name", "Name", "The name")
DESCRIPTION = Field("description", "Description (optional)", "The description", required=False, longest=500)
DOMAIN = Field(
    "domain",
    "Domains",
    "supply, design or both",
    "checkbox",
    hint="They cannot be changed later.",
    choices={"supply": "Supply: parts, offers and prices", "design": "Design: projects, boards and bills of materials"},
)
FLOW = Field("flow", "Grant types", "at least one", "checkbox", choices=FLOWS)
PLAN = Field("plan", "Plan", "plan", "radio", choices={key: _plan_label(plan) for key, plan in plans.PLANS.items()})
ADD_ON = Field(
    "add-on",
    "Add-ons of Pro",
    kind="checkbox",
    required=False,
    choices={feature: plans.NAMES[feature] for feature in plans.PLANS["pro"].add_ons},
)
PARTS = Field(
    "parts",
    "Part limit (optional)",
    "The number of parts",
    required=False,
    hint="Leave empty for the plan's own limit.",
    check=_parts_error,
)
CALLBACK = Field("callback", "One more", "The callback URL", "url", longest=2_000, check=_uri_error)
CALLBACKS = Field(
    "callbacks",
    "Callback URLs (optional)",
    "The callback URL",
    "lines",
    required=False,
    longest=2_000,
    hint="One a line: where browsers may be sent with a code.",
    check=_uri_error,
)
EMAIL = Field("email", "E-mail", "The e-mail address", "email", longest=254, check=_email_error)
PASSWORD = Field("password", "Password", kind="password", hint="No mail is sent: give the user the password yourself.")
ORGANIZATION = Field("organization", "Name of the organization", "The name")

NEW_USER = (NAME, EMAIL, PASSWORD)
NEW = Form("New application", "Create", (NAME, DESCRIPTION, DOMAIN, PLAN, ADD_ON, PARTS, CALLBACKS))
EDIT = Form("Edit {name}", "Save", (NAME, DESCRIPTION, FLOW), note="Its domains cannot be changed.")
CHANGE_PLAN = Form("Plan of {name}", "Change the plan", (PLAN, ADD_ON, PARTS), text="Usage is kept.")
ROTATE = Form(
    "Rotate the secret of {name}?",
    "Rotate",
    text="The old secret is refused at once, and so are refresh tokens that were sent to whoever has it.",
)
DELETE = Form(
    "Delete {name}?",
    "Delete",
    text="It gets no more tokens, and those that it has are refused. It cannot be brought back.",
    danger=True,
)
REMOVE_USER = Form("Remove {name}?", "Remove", text="The user is signed out and cannot sign in any more.", danger=True)
