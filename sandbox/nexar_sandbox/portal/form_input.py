"""Validation of the portal's forms: values, or messages for users. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nexar_sandbox import applications, plans, user_directory

NAME_LENGTH, TEXT_LENGTH, ADDRESS_LENGTH, MOST_ADDRESSES = 100, 500, 2_000, 50
SHORTEST_PASSWORD, LONGEST_PASSWORD = 8, 200
FLOWS = {
    applications.CLIENT_CREDENTIALS: "Client credentials: the application requests tokens for itself",
    applications.AUTHORIZATION_CODE: "Authorization code: users sign in and consent",
    applications.PASSWORD: "Password: the application sends users' passwords",
}
DOMAINS = {"supply": "Supply: parts, offers and prices", "design": "Design: projects, boards and bills of materials"}


@dataclass(slots=True)
class FormInput:
    """A submitted form. `mistakes`: messages by field, shown beside the input."""

    form: Mapping[str, str]
    mistakes: dict[str, str] = field(default_factory=dict)

    def line(self, name: str, label: str, *, needed: bool = True, longest: int = NAME_LENGTH) -> str:
        """A line of text."""
        text = self.form.get(name, "").strip()
        if needed and not text:
            self.mistakes[name] = f"{label} is missing."
        elif len(text) > longest:
            self.mistakes[name] = f"{label} has {len(text)} characters; the limit is {longest}."
        # A description may have several lines.
        elif not text.replace("\r\n", " ").replace("\n", " ").isprintable():
            self.mistakes[name] = f"{label} contains invisible characters."
        return text

    def chosen(self, name: str, among: Iterable[str]) -> tuple[str, ...]:
        """Values of checked boxes; their fields are named `name-value`."""
        return tuple(value for value in among if self.form.get(f"{name}-{value}"))

    def domains(self) -> tuple[str, ...]:
        """At least one."""
        domains = self.chosen("domain", applications.DOMAINS)
        if not domains:
            self.mistakes["domain"] = "Choose supply, design or both."
        return domains

    def flows(self) -> frozenset[str]:
        """At least one."""
        flows = frozenset(self.chosen("flow", FLOWS))
        if not flows:
            self.mistakes["flow"] = "Choose at least one."
        return flows

    def plan(self) -> tuple[plans.SandboxPlan, tuple[str, ...], int | None]:
        """Plan, add-ons and custom part limit."""
        key = self.form.get("plan", "")
        plan = plans.PLANS.get(key)
        if plan is None:
            self.mistakes["plan"] = f"There is no plan {key!r}." if key else "Choose a plan."
            # Any plan will do: the form is shown again.
            plan = plans.PLANS["evaluation"]
        add_ons = self.chosen("add-on", plans.ADD_ONS)
        if add_ons and not plan.has_add_ons:
            self.mistakes["add-on"] = f"Add-ons are for Pro; {plan.name} has what it has."
        elif "LIFECYCLE" in add_ons and "TECH_SPECS" not in add_ons:
            self.mistakes["add-on"] = "Lifecycle needs Tech specs."
        return plan, add_ons, self._parts()

    def address(self, name: str, existing: tuple[str, ...] = ()) -> str:
        """A valid callback URL."""
        text = self.form.get(name, "").strip()
        mistake = callback_error(text, existing)
        if mistake:
            self.mistakes[name] = mistake
        return text

    def addresses(self, name: str) -> tuple[str, ...]:
        """Callback URLs, one per line, without duplicates."""
        addresses: tuple[str, ...] = ()
        for line in self.form.get(name, "").split("\n"):
            text = line.strip()
            if text and text not in addresses:
                mistake = callback_error(text, addresses)
                if mistake:
                    self.mistakes[name] = mistake
                addresses = (*addresses, text)
        return addresses

    def password(self) -> str:
        """The password, not stripped."""
        text = self.form.get("password", "")
        if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD:
            self.mistakes["password"] = f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters."
        return text

    def email(self, users: user_directory.UserDirectory) -> str:
        """An unused e-mail address."""
        text = self.line("email", "The e-mail address", longest=254)
        if "email" not in self.mistakes:
            if not user_directory.EMAIL_ADDRESS.fullmatch(text):
                self.mistakes["email"] = f"{text!r} is not an e-mail address."
            elif users.by_email(text) is not None:
                self.mistakes["email"] = "This address is already in use."
        return text

    def _parts(self) -> int | None:
        text = self.form.get("parts", "").strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= plans.MAX_PARTS):
            self.mistakes["parts"] = f"Parts a month are a number from 0 to {plans.MAX_PARTS}, not {text[:50]!r}."
            return None
        return int(text)


def callback_error(text: str, existing: tuple[str, ...]) -> str:
    """Why a callback URL cannot be added; empty: it can."""
    if not text:
        return "The callback URL is missing."
    if len(text) > ADDRESS_LENGTH:
        return f"The callback URL has {len(text)} characters; the limit is {ADDRESS_LENGTH}."
    if not applications.is_absolute_uri(text):
        return f"{text!r} is not an absolute URL without a fragment, such as http://localhost:3000/login."
    if text in existing:
        return f"{text} is already listed."
    return f"An application has {MOST_ADDRESSES} callback URLs at most." if len(existing) >= MOST_ADDRESSES else ""
