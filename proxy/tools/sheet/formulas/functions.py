"""Functions of the three spreadsheet add-ins, as a table (contract workbook.md, Functions).

The Nexar add-in, the earlier Octopart add-in (both for Excel) and the Octopart script for Google Sheets. The latter two
share names; where they do, a row has the arguments of both.
"""

from typing import Literal, NamedTuple

Dialect = Literal["nexar", "octopart", "google"]

Result = Literal[
    "detail_url",
    "datasheet_url",
    "short_description",
    "manufacturer",
    "price",
    "average_price",
    "stock",
    "industry_stock",
    "stock_updated",
    "moq",
    "order_multiple",
    "lead_time",
    "packaging",
    "distributor_url",
    "sku",
    "image",
]
"""What a function looks up of a part or its offers."""

Session = Literal["login", "api_key", "options", "user", "version", "token", "token_expires", "features"]
"""What a function says about the add-in itself."""

Parameter = Literal[
    "mpn",
    "manufacturer",
    "distributors",
    "quantity",
    "currency",
    "authorized",
    "size",
    "client_id",
    "client_secret",
    "exclude_datasheets",
    "exclude_lead_time",
    "text",
]


class SheetFunction(NamedTuple):
    """One function: its name in upper case, without a prefix, and what its arguments mean, in their order."""

    name: str
    dialect: Dialect
    result: Result | Session
    parameters: tuple[Parameter, ...]

    @property
    def looks_up(self) -> bool:
        """True if the function needs a part."""
        return self.parameters[:1] == ("mpn",)

    @property
    def logs_in(self) -> bool:
        """True if the function is the login of its dialect."""
        return self.result in ("login", "api_key")


_PART: tuple[Parameter, ...] = ("mpn", "manufacturer")
_OFFERS: tuple[Parameter, ...] = (*_PART, "distributors", "authorized")
# Of the Octopart add-in the first three; the script has a quantity and a currency, which select the offer.
_OCTOPART_OFFERS: tuple[Parameter, ...] = (*_PART, "distributors", "quantity", "currency")
_LOGIN: tuple[Parameter, ...] = ("client_id", "client_secret", "exclude_datasheets", "exclude_lead_time")

_OF_OFFERS: dict[str, Result] = {
    "DISTRIBUTOR_STOCK": "stock",
    "DISTRIBUTOR_MOQ": "moq",
    "DISTRIBUTOR_ORDER_MULTIPLE": "order_multiple",
    "DISTRIBUTOR_LEAD_TIME": "lead_time",
    "DISTRIBUTOR_PACKAGING": "packaging",
    "DISTRIBUTOR_URL": "distributor_url",
    "DISTRIBUTOR_SKU": "sku",
}


def _functions() -> list[SheetFunction]:
    nexar: list[tuple[str, Result | Session, tuple[Parameter, ...]]] = [
        ("DETAIL_URL", "detail_url", _PART),
        ("DATASHEET_URL", "datasheet_url", _PART),
        ("SHORT_DESCRIPTION", "short_description", _PART),
        ("MANUFACTURER_NAME", "manufacturer", _PART),
        ("DISTRIBUTOR_PRICE", "price", (*_PART, "distributors", "quantity", "currency", "authorized")),
        ("AVERAGE_PRICE", "average_price", (*_PART, "quantity", "currency", "authorized")),
        ("DISTRIBUTOR_STOCK_UPDATED", "stock_updated", _OFFERS),
        *((name, result, _OFFERS) for name, result in _OF_OFFERS.items()),
        ("LOGIN", "login", _LOGIN),
        ("VERSION", "version", ()),
        ("DEV_TOKEN", "token", ()),
        ("DEV_TOKEN_EXPIRES", "token_expires", ()),
        ("DEV_FEATURES", "features", ()),
        ("FEATURES", "features", ()),  # its name in the add-in's source
    ]
    octopart: list[tuple[str, Result | Session, tuple[Parameter, ...]]] = [
        ("DETAIL_URL", "detail_url", _PART),
        ("DATASHEET_URL", "datasheet_url", _PART),
        ("AVERAGE_PRICE", "average_price", (*_PART, "quantity", "currency")),
        ("DISTRIBUTOR_PRICE", "price", _OCTOPART_OFFERS),
        *((name, result, _OCTOPART_OFFERS) for name, result in _OF_OFFERS.items()),
        ("SET_APIKEY", "api_key", ("client_secret",)),
        ("SET_OPTIONS", "options", ("text",)),
        ("SET_USER", "user", ("text",)),
        ("GET_INFO", "version", ()),
    ]
    google: list[tuple[str, Result | Session, tuple[Parameter, ...]]] = [
        ("DESCRIPTION", "short_description", _PART),
        ("IMAGE", "image", (*_PART, "size")),
        ("INDUSTRY_STOCK", "industry_stock", _PART),
        ("DISTRIBUTOR_ORDER_MUTIPLE", "order_multiple", _OCTOPART_OFFERS),  # misspelt there
    ]
    dialects: tuple[tuple[str, Dialect, list[tuple[str, Result | Session, tuple[Parameter, ...]]]], ...] = (
        ("NEXAR_SUPPLY_", "nexar", nexar),
        ("OCTOPART_", "octopart", octopart),
        ("OCTOPART_", "google", google),
    )
    return [
        SheetFunction(prefix + name, dialect, result, parameters)
        for prefix, dialect, rows in dialects
        for name, result, parameters in rows
    ]


FUNCTIONS = {function.name: function for function in _functions()}
"""All functions by name."""

PREFIXES = ("NEXAR_SUPPLY_", "OCTOPART_")
"""Every name begins with one of these."""

_FILE_PREFIXES = ("_XLL.", "_XLFN.", "_XLUDF.", "__XLUDF.", "_XLWS.")


def plain_name(token: str) -> str:
    """Return a function's name in upper case from its token, `@_xll.NAME(` or `[1]!Name(`: without what Excel writes
    before the names of add-ins' functions."""
    name = token.rstrip("(").rpartition("!")[2].lstrip("@").upper()
    while name.startswith(_FILE_PREFIXES):
        name = name.partition(".")[2]
    return name


def may_contain(formula: str) -> bool:
    """Return true unless a formula certainly has none of these functions. Saves tokenizing all formulas of a
    workbook."""
    upper = formula.upper()
    return any(prefix in upper for prefix in PREFIXES)
