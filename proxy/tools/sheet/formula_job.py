"""Fills the cells of a workbook whose formulas are calls of the add-in, with the workbook's one login."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, DecimalException
from typing import NamedTuple

from proxy import __version__, errors
from proxy.config import CURRENCIES, ClientId, Secret
from proxy.tools.sheet import files, offers
from proxy.tools.sheet.cell_texts import UNREADABLE, Cell
from proxy.tools.sheet.decisions import AMBIGUOUS, FAILED, FOUND, LEFT_OUT, NO_VALUE, NOT_FETCHED, NOT_FOUND
from proxy.tools.sheet.lines import text_of
from proxy.tools.sheet.offers import Offer, PartQuery, PartResult
from proxy.tools.sheet.workbook import FUNCTIONS, PREFIX, Call, NewCell
from proxy.traffic.bom_columns import PLACEHOLDERS, is_one_of

NOT_AVAILABLE, VALUE_ERROR = "#N/A", "#VALUE!"
READY = "The Nexar Supply Add-in is ready!"
MISSING = "Please provide your Nexar application Client Id and Secret"
REFUSED = "Unable to login to Nexar application, check Client Id and Secret"
EXPIRED = "The access token has expired, please refresh login!"
LOGIN_SECONDS = 86_400.0  # as in the add-in, and of the tokens of the identity service
OUTCOMES = (FOUND, NO_VALUE, AMBIGUOUS, NOT_FOUND, FAILED, LEFT_OUT, NOT_FETCHED)
_LISTED = 5  # cells that an error names
_ALL = "Datasheets: 1; LeadTime: 1"
_TEXTS = {"LOGIN": READY, "FEATURES": _ALL, "DEV_FEATURES": _ALL, "VERSION": f"v3bridge {__version__}"}


class ApplicationLogin(NamedTuple):
    """Client credentials of a workbook's login."""

    client_id: ClientId
    client_secret: Secret


class PartRequest(NamedTuple):
    """What one call looks up: the part, and which of its offers count, under what conditions."""

    function: str
    mpn: str
    manufacturer: str
    distributors: tuple[str, ...]
    quantity: int
    currency: str
    authorized: str
    """`y`, `n`, or anything else for both."""


class FormulaJob:
    """The calls of one workbook. `problems`: cells that are left as they are, and why; `distributors`: those that the
    calls name. After `cells`, `outcomes` say how many cells have which, and `reasons` why."""

    unit = "cell"

    def __init__(self, file: str, calls: Sequence[Call], problems: Sequence[str], *, login_optional: bool) -> None:
        self.problems = [*problems]
        self._file = file
        self._login = _login(file, calls, optional=login_optional)
        self._requests: dict[PartQuery, list[tuple[Call, PartRequest]]] = defaultdict(list)
        self._values: list[tuple[Call, Cell, str, str]] = []  # with outcome and reason
        self.outcomes = dict.fromkeys(OUTCOMES, 0) | {LEFT_OUT: len(self.problems)}
        self.reasons: Counter[str] = Counter()
        self.lines = sum(call.looks_up for call in calls)  # cells that look up a part
        for call in calls:
            if not call.looks_up:
                self._values.append((call, _TEXTS.get(call.function, ""), "", ""))
                continue
            try:
                request = _request(call)
            except ValueError:
                self._values.append((call, VALUE_ERROR, NO_VALUE, "an argument is an error, or no number"))
                continue
            is_number = request.mpn and not is_one_of(PLACEHOLDERS, request.mpn)
            if not is_number or request.currency not in CURRENCIES:
                self._values.append((call, NOT_AVAILABLE, NO_VALUE, "no part number, or no currency"))
            else:
                currency = request.currency if call.function.endswith("_PRICE") else "USD"
                query = PartQuery(request.mpn, request.manufacturer, currency=currency)
                self._requests[query].append((call, request))
        requests = [request for requests in self._requests.values() for _, request in requests]
        self.distributors = {name for request in requests for name in request.distributors}
        self.is_refused = False  # the login, which its cell says

    def login(self, now: float, *, refresh: bool) -> ApplicationLogin | None:
        """Return the workbook's credentials; None without a login. Raises SheetError, in the add-in's words, where they
        are missing, or a day after the first login, unless it is renewed."""
        if self._login is None:
            return None
        client_id, secret = [*(text_of(values[0]).strip() for values in self._login.arguments if values), "", ""][:2]
        if {client_id, secret} & {"", *UNREADABLE}:
            raise errors.SheetError(f"{self._file}: {self._login.place}: {MISSING}; fill its cells, or use --api-key")
        with files.state() as known:
            since = now if refresh else known.logins.get(files.digest(client_id.encode()), now)
        if now - since >= LOGIN_SECONDS:
            raise errors.SheetError(f"{self._file}: {self._login.place}: {EXPIRED} Run again with --refresh-login")
        return ApplicationLogin(ClientId(client_id), Secret(secret))

    @property
    def worst_case(self) -> int:
        """Parts at most of what is not fetched yet."""
        return len(self._requests)

    def needed(self) -> list[PartQuery]:
        return [*self._requests]

    def add(self, result: PartResult) -> None:
        """Take one result: calls get their values."""
        for call, request in self._requests.pop(result.query, ()):
            self._values.append((call, *_value(request, result)))

    def cells(self) -> list[NewCell]:
        """Return the cells with their values, and their formulas as comments: that of the login without its secret."""
        cells = []
        self.outcomes[NOT_FETCHED] = sum(map(len, self._requests.values()))
        for call, value, outcome, reason in self._values:
            if outcome:
                self.outcomes[outcome] += 1
            if reason:
                self.reasons[f"{outcome}: {reason}"] += 1
            is_login = call.function == "LOGIN"
            comment = f"={PREFIX}LOGIN(…)" if is_login else call.formula
            new = REFUSED if is_login and self.is_refused else value
            cells.append(NewCell(call.sheet, call.row, call.column, new, comment))
        return cells


def _login(file: str, calls: Sequence[Call], *, optional: bool) -> Call | None:
    logins = [call for call in calls if call.function == "LOGIN"]
    if len(logins) == 1 or (optional and not logins):
        return next(iter(logins), None)
    wrong = logins or [call for call in calls if call.looks_up]
    more = f" and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
    places = ", ".join(call.place for call in wrong[:_LISTED]) + more
    if logins:
        raise errors.SheetError(f"{file}: two logins, in {places}: a workbook has exactly one; delete the others")
    raise errors.SheetError(
        f"{file}: no login: {places} use the add-in's functions, which need exactly one cell with "
        '=NEXAR_SUPPLY_LOGIN("client id", "client secret"); add it, or use --api-key'
    )


def _request(call: Call) -> PartRequest:
    """Return what a call looks up. Raises ValueError for an argument that is an error, or no number."""
    stated = ([text_of(each).strip() for each in values] for values in call.arguments)
    given = dict(zip(FUNCTIONS[call.function], stated, strict=False))
    if any(text in UNREADABLE for values in given.values() for text in values):
        raise ValueError("a cell cannot be read")
    texts = {name: values[0] for name, values in given.items() if values}
    quantity = texts.get("quantity", "")
    try:
        number = Decimal(quantity or 1)
    except DecimalException:
        raise ValueError(quantity) from None
    if not number.is_finite() or number < 0 or number.adjusted() > 15 or "_" in quantity:
        raise ValueError(quantity)
    return PartRequest(
        call.function,
        texts.get("mpn", ""),
        texts.get("manufacturer", ""),
        tuple(filter(None, given.get("distributors", ()))),
        # Excel gives an add-in the nearest whole number; the add-in takes 0 for 1.
        int(number.quantize(Decimal(1), ROUND_HALF_EVEN)) or 1,
        texts.get("currency", "").upper() or "USD",
        texts.get("authorized", "")[:1].lower(),
    )


def _value(request: PartRequest, result: PartResult) -> tuple[Cell, str, str]:
    """Return the value of a call, its outcome, and the reason where it has no value, or none that is certain."""
    if result.error is not None:
        return NOT_AVAILABLE, FAILED, result.error
    if not result.parts:
        return NOT_AVAILABLE, NOT_FOUND, "no part has this number"
    part, name = result.parts[0], request.function
    if name in _OF_PART:
        value: Cell = getattr(part, _OF_PART[name]) or ""
    else:
        matching = [
            offer
            for offer in offers.allowed(part.offers, offers.OfferRules(request.distributors))
            if request.authorized not in ("y", "n") or offer.authorized is (request.authorized == "y")
        ]
        of_offers = _of_offers(name, matching, request) if matching else NOT_AVAILABLE
        value = float(of_offers) if isinstance(of_offers, Decimal) else of_offers
    if result.hits > 1 and not request.manufacturer:
        return value, AMBIGUOUS, "several parts match: state the manufacturer"
    return (value, NO_VALUE, request.function) if value in ("", NOT_AVAILABLE) else (value, FOUND, "")


def _of_offers(name: str, matching: Sequence[Offer], request: PartRequest) -> Cell | Decimal:
    """Return the value of a function about offers, of which there is one at least."""
    best = offers.best(matching, request.quantity, request.currency)
    values: list[Cell | Decimal] = [] if best is None else [best.unit_price]
    if name in _OF_BEST:
        values = [getattr(best.offer if best else matching[0], _OF_BEST[name]) or ""]
    elif name in _LEAST:
        field, above = _LEAST[name]
        numbers = [getattr(offer, field) for offer in matching]
        values = sorted(each for each in numbers if each is not None and each > above)
    elif name == "DISTRIBUTOR_STOCK":
        levels = [offer.stock for offer in matching if offer.stock is not None]
        values = [offers.stock_text(max(levels))] if levels else []
    elif name == "DISTRIBUTOR_STOCK_UPDATED":
        values = [max(offer.updated or "" for offer in matching)]  # ISO 8601 in UTC sorts by time
    elif name == "AVERAGE_PRICE":
        candidates = [offers.purchase(offer, request.quantity, request.currency) for offer in matching]
        purchases = [purchase for purchase in candidates if purchase is not None]
        # The price of a reel says nothing about that of ten pieces, unless there is nothing else to buy.
        exact = [purchase for purchase in purchases if purchase.quantity == request.quantity] or purchases
        mean = sum((purchase.unit_price for purchase in exact), Decimal(0)) / max(1, len(exact))
        values = [Decimal(f"{mean:.15g}")] if exact else []  # Excel's precision
    return values[0] if values else NOT_AVAILABLE


_OF_PART = {
    "DETAIL_URL": "url",
    "DATASHEET_URL": "datasheet_url",
    "SHORT_DESCRIPTION": "short_description",
    "MANUFACTURER_NAME": "manufacturer",
}
_LEAST = {
    "DISTRIBUTOR_MOQ": ("moq", 0),
    "DISTRIBUTOR_ORDER_MULTIPLE": ("order_multiple", 0),
    "DISTRIBUTOR_LEAD_TIME": ("lead_days", -1),
}
_OF_BEST = {"DISTRIBUTOR_PACKAGING": "packaging", "DISTRIBUTOR_URL": "url", "DISTRIBUTOR_SKU": "sku"}
