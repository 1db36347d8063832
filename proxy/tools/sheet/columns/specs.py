"""Columns as people name them: `price@100:EUR`, `price@100:Digi-Key`, `lead_time`; and templates, named sets of them.

The heading of a column is made of its name, so that a later run finds the columns that it wrote itself. It begins
with the name of the data's source: a BOM has headings such as Stock or Manufacturer of its own, which must stay.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from proxy import errors
from proxy.kit import located_yaml
from proxy.tools.sheet.columns.kinds import KINDS
from proxy.tools.sheet.currencies import CURRENCIES
from proxy.tools.sheet.offers import ALL_OFFERS, OfferRules
from proxy.tools.sheet.package.cells import ColumnLook

CURRENCY = "USD"
QUANTITY_MAX = 10**9
PREFIX = "Nexar"
HEADING_WIDTH = 26  # characters of a heading that a column shows, with the arrow of its filter
SHOWN = 60  # characters of a wrong name in a message

_SPEC = re.compile(r"(?P<name>[^@:]*)(?:@(?P<quantity>[^:]*))?(?::(?P<argument>.*))?", re.DOTALL)


class ColumnSpec(NamedTuple):
    """One column. `quantity` and `currency` are None where the line's quantity and the run's currency count."""

    kind: str
    quantity: int | None = None
    currency: str | None = None
    distributor: str | None = None
    spec: str | None = None

    def heading(self, currency: str) -> str:
        """Return the heading; `currency` is that of the run."""
        kind = KINDS[self.kind]
        words = [PREFIX, kind.label]
        if self.quantity is not None:
            words.append(f"@{self.quantity}")
        if "currency" in kind.options:
            words.append(self.currency or currency)
        if self.distributor is not None:
            words.append(self.distributor)
        if self.spec is not None:
            words.append(self.spec)
        return " ".join(words)

    def look(self, currency: str) -> ColumnLook:
        """Return the look of the column; `currency` is that of the run."""
        kind = KINDS[self.kind]
        width = max(kind.look.width, min(len(self.heading(currency)) + 3, HEADING_WIDTH))
        number_format = kind.look.number_format.replace("CURRENCY", self.currency or currency)
        return kind.look._replace(width=width, number_format=number_format)


STATUS, NEEDED = ColumnSpec("status"), ColumnSpec("needed")


def parse_list(text: str) -> list[ColumnSpec]:
    """Parse columns that are separated by commas. Raises ConfigError."""
    return parse_columns(each.strip() for each in text.split(",") if each.strip())


def parse_columns(names: Iterable[str]) -> list[ColumnSpec]:
    """Parse columns; the same one twice is one. The status column is added where it is not named. Raises ConfigError
    for an unknown one."""
    specs = list(dict.fromkeys(map(parse, names)))
    if not specs:
        raise errors.ConfigError(f"no columns are named; there are {', '.join(KINDS)}")
    return specs if STATUS in specs else [*specs, STATUS]


def parse(text: str) -> ColumnSpec:
    """Parse one column. Raises ConfigError that names the nearest one."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise AssertionError("every text matches")
    name = match["name"].strip().lower().replace(" ", "_").replace("-", "_")
    if name not in KINDS:
        raise errors.ConfigError(_unknown(match["name"].strip()))
    options = KINDS[name].options
    if match["quantity"] is not None and "quantity" not in options:
        raise errors.ConfigError(f"the column {name} has no quantity: write {name} instead of {text[:SHOWN]!r}")
    quantity = None if match["quantity"] is None else _quantity(name, match["quantity"].strip())
    argument = match["argument"]
    if "spec" in options:
        if not any(map(str.isalnum, argument or "")):
            raise errors.ConfigError(f"the column {name} needs a name, such as {name}:resistance")
        return ColumnSpec(name, spec=" ".join((argument or "").split()))
    if argument is None:
        return ColumnSpec(name, quantity)
    first, _, rest = argument.partition(":")
    is_currency = "currency" in options and first.strip().upper() in CURRENCIES
    currency, distributor = (first.strip().upper(), rest.strip()) if is_currency else (None, argument.strip())
    if is_currency and not distributor:
        return ColumnSpec(name, quantity, currency)
    if "distributor" in options and any(map(str.isalnum, distributor)):
        return ColumnSpec(name, quantity, currency, distributor)
    raise errors.ConfigError(f"the column {name} cannot be followed by {text[text.index(':') :][:SHOWN]!r}")


def parse_currency(text: str) -> str:
    """Return an ISO 4217 code in upper case. Raises ConfigError."""
    code = text.strip().upper()
    if code not in CURRENCIES:
        raise errors.ConfigError(
            f"{text[:SHOWN]!r} is not a currency: use its code of three letters, such as EUR (ISO 4217)"
        )
    return code


def parse_offers(text: str) -> int | None:
    """Return how many offers of each line `all`, `none` or `best:N` lists; None for all. Raises ConfigError."""
    match = re.fullmatch(r"all|none|best:([1-9]\d{0,6})", text.strip().lower(), re.ASCII)
    if match is None:
        raise errors.ConfigError(f"--offers {text[:SHOWN]!r} is unknown: write all, none, or best:N such as best:5")
    return int(match[1]) if match[1] else {"all": None, "none": 0}[match[0]]


def _quantity(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:10]) <= QUANTITY_MAX or len(text) > 10:
        raise errors.ConfigError(
            f"the quantity of {name}@{text[:SHOWN]} is not a whole number from 1 to {QUANTITY_MAX}"
        )
    return int(text)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), KINDS, 1, 0.5)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown column {name[:SHOWN]!r}{meant}; there are {', '.join(KINDS)}"


class ColumnSet(NamedTuple):
    """What a run adds: columns, the offers that count, the currency of prices without one of their own, and how many
    offers of each line are listed (None: all)."""

    specs: Sequence[ColumnSpec]
    rules: OfferRules = ALL_OFFERS
    currency: str = CURRENCY
    offers: int | None = None

    @property
    def currencies(self) -> list[str]:
        """Currencies that are needed, each of which is one query for each line."""
        used = [each.currency or self.currency for each in self.specs if "currency" in KINDS[each.kind].options]
        return list(dict.fromkeys(used or [self.currency]))

    @property
    def distributors(self) -> set[str]:
        """Names and ids of distributors that are asked for."""
        return {*self.rules.distributors, *(each.distributor for each in self.specs if each.distributor)}

    @property
    def needs_sources(self) -> bool:
        """Whether the manufacturers of each number are looked up, too."""
        return any(KINDS[each.kind].of_sources for each in self.specs)

    @property
    def needs_similar(self) -> bool:
        """Whether parts that may replace those of each number are looked up, too."""
        return any(each.kind == "alternatives" for each in self.specs)

    @property
    def notes(self) -> list[str]:
        """What the user should know before the run."""
        if not self.needs_similar:
            return []
        return [
            "alternatives: the vendor does not say whether similar parts are billed, too; they are not counted here"
        ]

    @property
    def spec_names(self) -> set[str]:
        """Names of specs that are asked for."""
        return {each.spec for each in self.specs if each.spec is not None}

    @property
    def quantity(self) -> int | None:
        """The quantity of the price columns, if it is one, at which the best offer is chosen for the others, too."""
        quantities = {each.quantity for each in self.specs if "currency" in KINDS[each.kind].options}
        return quantities.pop() if len(quantities) == 1 else None

    def note_without(self, features: Collection[str]) -> str | None:
        """Return which columns stay empty without further plan features; None if there are none. It is said before
        parts are spent, because a plan that does include them only has to be configured."""
        kinds = {spec.kind: KINDS[spec.kind].feature for spec in self.specs}
        empty = {kind: feature for kind, feature in kinds.items() if feature is not None and feature not in features}
        if not empty:
            return None
        missing = ", ".join(dict.fromkeys(empty.values()))
        return f"{', '.join(empty)}: will be empty: the application has no {missing} (configuration: features)"


class _Template(msgspec.Struct, forbid_unknown_fields=True):
    columns: list[str]
    currency: str | None = None
    rules: OfferRules = ALL_OFFERS


def load_template(place: str) -> ColumnSet:
    """Load a set of columns from `FILE`, or the one of several that `FILE:NAME` names. Raises ConfigError."""
    path, name = _file_and_name(place)
    document = located_yaml.load(path, errors.ConfigError)
    if not isinstance(document.data, dict) or not document.data:
        raise errors.ConfigError(f"{path.name}: holds no templates; write NAME: {{columns: [price@100, stock]}}")
    names = ", ".join(map(str, document.data))
    if name is None and len(document.data) > 1:
        raise errors.ConfigError(f"{path.name}: has several templates: name one with {path}:NAME, of {names}")
    key = name or str(next(iter(document.data)))
    if key not in document.data:
        raise errors.ConfigError(f"{path.name}: has no template {key[:SHOWN]!r}; there are {names}")
    return _column_set(document, key)


def _column_set(document: located_yaml.LocatedYaml, key: str) -> ColumnSet:
    template = document.convert(_Template, errors.ConfigError, (key,))
    specs: list[ColumnSpec] = []
    for index, column in enumerate(template.columns):
        with _mistakes_at(document.place((key, "columns", index))):
            specs.append(parse(column))
    with _mistakes_at(document.place((key, "columns"))):
        specs = parse_columns(template.columns)
    with _mistakes_at(document.place((key, "currency"))):
        currency = CURRENCY if template.currency is None else parse_currency(template.currency)
    return ColumnSet(specs, template.rules, currency)


@contextmanager
def _mistakes_at(place: str) -> Iterator[None]:
    try:
        yield
    except errors.ConfigError as error:
        raise errors.ConfigError(f"{place}: {error.message}") from None


def _file_and_name(place: str) -> tuple[Path, str | None]:
    """Split `FILE:NAME`. A colon may also belong to the name of the file."""
    file, _, name = place.rpartition(":")
    return (Path(place), None) if not file or Path(place).exists() else (Path(file), name)
