"""Fills the cells of a workbook whose formulas are calls of the add-in, with the workbook's one login."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, DecimalException
from typing import NamedTuple

from proxy import __version__, errors
from proxy.config import ClientId, Secret
from proxy.tools.sheet import files, offers
from proxy.tools.sheet.currencies import CURRENCIES
from proxy.tools.sheet.decisions import AMBIGUOUS, FAILED, FOUND, LEFT_OUT, NO_VALUE, NOT_FETCHED, NOT_FOUND
from proxy.tools.sheet.formulas import FUNCTIONS, PREFIX, Call
from proxy.tools.sheet.lines import text_of
from proxy.tools.sheet.parts import Offer, Part, PartQuery, PartResult
from proxy.tools.sheet.quantities import UNREADABLE, Cell
from proxy.tools.sheet.source import ApplicationLogin
from proxy.tools.sheet.workbook import NewCell
from proxy.traffic import bom_columns

CellValue = str | int | float

NOT_AVAILABLE, VALUE_ERROR = "#N/A", "#VALUE!"
READY = "The Nexar Supply Add-in is ready!"
MISSING = "Please provide your Nexar application Client Id and Secret"
REFUSED = "Unable to login to Nexar application, check Client Id and Secret"
EXPIRED = "The access token has expired, please refresh login!"
LOGIN_SECONDS = 86_400.0  # as in the add-in, and of the tokens of the identity service
_LISTED = 5  # cells that an error names


class PartRequest(NamedTuple):
    """What one call looks up: the part, and which of its offers count, under what conditions."""

    function: str
    mpn: str
    manufacturer: str = ""
    distributors: tuple[str, ...] = ()
    quantity: int = 1
    currency: str = "USD"
    authorized: str = ""
    """`y`, `n`, or anything else for both."""

    @property
    def query(self) -> PartQuery:
        """The query that gets the part."""
        prices = self.function.endswith("_PRICE")
        return PartQuery(self.mpn, self.manufacturer, currency=self.currency if prices else "USD")


class WorkbookLogin(NamedTuple):
    """The login of a workbook."""

    place: str
    client_id: ClientId
    secret: Secret
    exclude_datasheets: bool
    exclude_lead_time: bool

    def credentials(self, file: str, now: float, *, refresh: bool) -> ApplicationLogin:
        """Return the client credentials. Raises SheetError, in the add-in's words, without them, or if the login is
        older than 24 hours."""
        if not self.secret.reveal() or not self.client_id:
            raise errors.SheetError(f"{file}: {self.place}: {MISSING}; fill its cells, or use --api-key")
        time = files.state().logins.get(self._digest)
        if not refresh and time is not None and now - time >= LOGIN_SECONDS:
            raise errors.SheetError(f"{file}: {self.place}: {EXPIRED} Run again with --refresh-login")
        return ApplicationLogin(self.client_id, self.secret, self.exclude_datasheets, self.exclude_lead_time)

    def note(self, now: float, *, refreshed: bool) -> None:
        """Note a successful login. It lasts from the first one on, unless it was refreshed."""
        with files.changed_state() as state:
            if refreshed or self._digest not in state.logins:
                state.logins[self._digest] = now

    @property
    def _digest(self) -> str:
        return hashlib.blake2b(self.client_id.encode(), digest_size=12).hexdigest()


class FormulaJob:
    """The calls of one workbook. `problems`: cells that are left as they are, and why."""

    unit = "cell"

    def __init__(self, file: str, calls: Sequence[Call], problems: Sequence[str], *, login_optional: bool) -> None:
        self.problems = [*problems]
        self._calls = calls
        self.login = _login(file, calls, optional=login_optional)
        self._requests: dict[PartQuery, list[tuple[Call, PartRequest]]] = defaultdict(list)
        self._values: list[tuple[Call, CellValue]] = []
        self._outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        for call in calls:
            if call.looks_up:
                self._plan(call)
            else:
                self._values.append((call, _session_text(call, self.login)))
        self._is_refused = False

    def _plan(self, call: Call) -> None:
        try:
            request = _request(call)
        except ValueError:
            self._set(call, VALUE_ERROR, NO_VALUE, "an argument is an error, or no number")
            return
        if not request.mpn or bom_columns.is_placeholder(request.mpn) or request.currency not in CURRENCIES:
            self._set(call, NOT_AVAILABLE, NO_VALUE, "no part number, or no currency")
            return
        self._requests[request.query].append((call, request))

    def _set(self, call: Call, value: CellValue, outcome: str, reason: str = "") -> None:
        self._values.append((call, value))
        self._outcomes[outcome] += 1
        if reason:
            self.reasons[f"{outcome}: {reason}"] += 1

    @property
    def lines(self) -> int:
        """Number of cells that look up a part."""
        return sum(call.looks_up for call in self._calls)

    @property
    def worst_case(self) -> int:
        """Parts at most of what is not fetched yet."""
        return len(self._requests)

    @property
    def distributors(self) -> set[str]:
        """Distributors that the calls name."""
        return {name for calls in self._requests.values() for _, request in calls for name in request.distributors}

    def refuse_distributors(self, unknown: Mapping[str, str]) -> list[str]:
        """Spend nothing on calls that name no distributor that exists; return what is to be said."""
        for query, calls in [*self._requests.items()]:
            refused = [
                (call, request)
                for call, request in calls
                if request.distributors and unknown.keys() >= {*request.distributors}
            ]
            for call, request in refused:
                calls.remove((call, request))
                self._set(call, NOT_AVAILABLE, NO_VALUE, f"no distributor is called {request.distributors[0]!r}")
            if not calls:
                del self._requests[query]
        return [f"{reason}: formulas that name no other cost nothing" for reason in unknown.values()]

    def needed(self) -> list[PartQuery]:
        """Return the queries of calls without a value."""
        return [*self._requests]

    def add(self, result: PartResult) -> None:
        """Take one result: calls get their values."""
        for call, request in self._requests.pop(result.query, ()):
            self._set(call, *_value(request, result, self.login))

    def end_login(self, *, refused: bool, used: bool, refreshed: bool, now: float) -> None:
        """Note when the login was used first or renewed, or write into its cell that it was refused."""
        self._is_refused = refused
        if self.login is not None and not refused and used:
            self.login.note(now, refreshed=refreshed)

    def counts(self) -> dict[str, int]:
        """Return the number of cells by outcome."""
        self._outcomes[NOT_FETCHED] = sum(map(len, self._requests.values()))
        self._outcomes[LEFT_OUT] = len(self.problems)
        outcomes = (FOUND, NO_VALUE, AMBIGUOUS, NOT_FOUND, FAILED, LEFT_OUT, NOT_FETCHED)
        return {outcome: self._outcomes[outcome] for outcome in outcomes}

    def cells(self) -> list[NewCell]:
        """Return the cells with their values, and the formulas as their comments; that of the login without its
        arguments."""
        cells = []
        for call, value in self._values:
            is_login = call.function == "LOGIN"
            comment = f"={PREFIX}LOGIN(…)" if is_login else call.formula
            new = REFUSED if is_login and self._is_refused else value
            cells.append(NewCell(call.sheet, call.row, call.column, new, comment))
        return cells


def _login(file: str, calls: Sequence[Call], *, optional: bool) -> WorkbookLogin | None:
    """Return the login; None without one, where that is allowed. Raises SheetError."""
    logins = [call for call in calls if call.function == "LOGIN"]
    if len(logins) > 1:
        places = _listed(logins)
        raise errors.SheetError(f"{file}: two logins, in {places}: a workbook has exactly one; delete the others")
    if not logins and not optional:
        places = _listed([call for call in calls if call.looks_up])
        raise errors.SheetError(
            f"{file}: no login: {places} use the add-in's functions, which need exactly one cell with "
            '=NEXAR_SUPPLY_LOGIN("client id", "client secret"); add it, or use --api-key'
        )
    for call in logins:
        client_id, secret, *excluded = [*map(_text, call.arguments), "", "", "", ""][:4]
        flags = [text.casefold() in ("true", "1") for text in excluded]
        return WorkbookLogin(call.place, ClientId(client_id), Secret(secret), *flags)
    return None


def _listed(calls: Sequence[Call]) -> str:
    more = f" and {len(calls) - _LISTED} more" if len(calls) > _LISTED else ""
    return ", ".join(call.place for call in calls[:_LISTED]) + more


def _session_text(call: Call, login: WorkbookLogin | None) -> str:
    """Return what a function says about the add-in itself. Tokens are not shown."""
    excluded = (False, False) if login is None else (login.exclude_datasheets, login.exclude_lead_time)
    features = "Datasheets: {:d}; LeadTime: {:d}".format(*(not each for each in excluded))
    texts = {"LOGIN": READY, "FEATURES": features, "DEV_FEATURES": features, "VERSION": f"v3bridge {__version__}"}
    return texts.get(call.function, "")


def _text(values: Sequence[Cell]) -> str:
    """Return an argument as text. Raises ValueError for an error."""
    text = text_of(values[0]).strip() if values else ""
    if text in UNREADABLE:
        raise ValueError(text)
    return text


def _request(call: Call) -> PartRequest:
    """Return what a call looks up. Raises ValueError."""
    given = dict(zip(FUNCTIONS[call.function], call.arguments, strict=False))
    texts = {name: _text(values) for name, values in given.items()}
    return PartRequest(
        call.function,
        texts.get("mpn", ""),
        texts.get("manufacturer", ""),
        tuple(text for value in given.get("distributors", ()) if (text := _text([value]))),
        _quantity(texts.get("quantity", "")),
        texts.get("currency", "").upper() or "USD",
        texts.get("authorized", "")[:1].lower(),
    )


def _quantity(text: str) -> int:
    try:
        number = Decimal(text or 1)
    except DecimalException:
        raise ValueError(text) from None
    if not number.is_finite() or number < 0 or number.adjusted() > 15 or "_" in text:
        raise ValueError(text)
    # Excel gives an add-in the nearest whole number; the add-in takes 0 for 1.
    return int(number.quantize(Decimal(1), ROUND_HALF_EVEN)) or 1


def _value(request: PartRequest, result: PartResult, login: WorkbookLogin | None) -> tuple[CellValue, str, str]:
    """Return the value of a call, its outcome, and the reason where it has no value, or none that is certain."""
    if result.error is not None:
        return NOT_AVAILABLE, FAILED, result.error
    if not result.parts:
        return NOT_AVAILABLE, NOT_FOUND, "no part has this number"
    value = part_value(request, result.parts[0], login)
    if result.hits > 1 and not request.manufacturer:
        return value, AMBIGUOUS, "several parts match: state the manufacturer"
    return (value, NO_VALUE, request.function) if value in ("", NOT_AVAILABLE) else (value, FOUND, "")


def part_value(request: PartRequest, part: Part, login: WorkbookLogin | None) -> CellValue:
    """Return the value of a call for a part."""
    name = request.function
    if login is not None and (
        (name == "DATASHEET_URL" and login.exclude_datasheets)
        or (name == "DISTRIBUTOR_LEAD_TIME" and login.exclude_lead_time)
    ):
        return ""
    if name in _OF_PART:
        return _OF_PART[name](part) or ""
    matching = [
        offer
        for offer in part.offers
        if (not request.distributors or any(offers.is_from(offer, each) for each in request.distributors))
        and (request.authorized not in ("y", "n") or offer.authorized is (request.authorized == "y"))
    ]
    value = _OF_OFFERS[name](matching, request) if matching else NOT_AVAILABLE
    return float(value) if isinstance(value, Decimal) else value


def _least_price(matching: Sequence[Offer], request: PartRequest) -> CellValue | Decimal:
    purchase = offers.best(matching, request.quantity, request.currency)
    return purchase.unit_price if purchase else NOT_AVAILABLE


def _average_price(matching: Sequence[Offer], request: PartRequest) -> CellValue | Decimal:
    candidates = [offers.purchase(offer, request.quantity, request.currency) for offer in matching]
    purchases = [purchase for purchase in candidates if purchase is not None]
    # The price of a reel says nothing about that of ten pieces, unless there is nothing else to buy.
    exact = [purchase for purchase in purchases if purchase.quantity == request.quantity] or purchases
    if not exact:
        return NOT_AVAILABLE
    mean = sum((purchase.unit_price for purchase in exact), Decimal(0)) / len(exact)
    return Decimal(f"{mean:.15g}")  # Excel's precision


def _stock(matching: Sequence[Offer], _: PartRequest) -> CellValue | Decimal:
    levels = [offer.stock for offer in matching if offer.stock is not None]
    return offers.stock_text(max(levels)) if levels else NOT_AVAILABLE


_OfOffers = Callable[[Sequence[Offer], PartRequest], CellValue | Decimal]


def _least(number: Callable[[Offer], int | None], above: int) -> _OfOffers:
    def least(matching: Sequence[Offer], _: PartRequest) -> CellValue | Decimal:
        numbers = [value for offer in matching if (value := number(offer)) is not None and value > above]
        return min(numbers) if numbers else NOT_AVAILABLE

    return least


def _of_best(text: Callable[[Offer], str | None]) -> _OfOffers:
    """Return a text of the offer that the price is of."""

    def of(matching: Sequence[Offer], request: PartRequest) -> CellValue | Decimal:
        purchase = offers.best(matching, request.quantity, request.currency)
        return text(purchase.offer if purchase else matching[0]) or ""

    return of


_OF_PART: dict[str, Callable[[Part], str | None]] = {
    "DETAIL_URL": lambda part: part.url,
    "DATASHEET_URL": lambda part: part.datasheet_url,
    "SHORT_DESCRIPTION": lambda part: part.short_description,
    "MANUFACTURER_NAME": lambda part: part.manufacturer,
}
_OF_OFFERS: dict[str, _OfOffers] = {
    "DISTRIBUTOR_PRICE": _least_price,
    "AVERAGE_PRICE": _average_price,
    "DISTRIBUTOR_STOCK": _stock,
    # ISO 8601 in UTC sorts by time.
    "DISTRIBUTOR_STOCK_UPDATED": lambda matching, _: max(
        (each.updated for each in matching if each.updated), default=""
    ),
    "DISTRIBUTOR_MOQ": _least(lambda offer: offer.moq, 0),
    "DISTRIBUTOR_ORDER_MULTIPLE": _least(lambda offer: offer.order_multiple, 0),
    "DISTRIBUTOR_LEAD_TIME": _least(lambda offer: offer.lead_days, -1),
    "DISTRIBUTOR_PACKAGING": _of_best(lambda offer: offer.packaging),
    "DISTRIBUTOR_URL": _of_best(lambda offer: offer.url),
    "DISTRIBUTOR_SKU": _of_best(lambda offer: offer.sku),
}
