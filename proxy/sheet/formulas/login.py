"""The one login of a workbook, in whichever add-in's words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proxy import errors
from proxy.config import ClientId, Secret
from proxy.sheet.formulas.calls import FunctionCall
from proxy.sheet.formulas.functions import Parameter
from proxy.sheet.formulas.references import CellPosition
from proxy.sheet.formulas.results import Excluded
from proxy.sheet.formulas.workbook import CallCell

READY = "The Nexar Supply Add-in is ready!"
MISSING = "Please provide your Nexar application Client Id and Secret"
REFUSED = "Unable to login to Nexar application, check Client Id and Secret"
EXPIRED = "The access token has expired, please refresh login!"
OCTOPART_READY = "Octopart Add-In is ready!"
OCTOPART_OBSOLETE = "[Obsolete] Please use =OCTOPART_SET_APIKEY(...)"
OCTOPART_OPTIONS = "The following options were set:"

_LISTED = 5  # cells that an error names


class WorkbookLogin(NamedTuple):
    """The login of a workbook: client credentials, or the API key of the proxy that the Octopart add-in had."""

    cell: CellPosition
    client_id: ClientId | None
    secret: Secret
    """Client secret or API key; empty where the cell has none."""
    excluded: Excluded

    @property
    def is_complete(self) -> bool:
        """True unless something is missing."""
        return bool(self.secret.reveal()) and (self.client_id is None or bool(self.client_id))


def login_call(cells: Sequence[CallCell], *, optional: bool) -> tuple[CallCell, FunctionCall] | None:
    """Return the cell with the login and the call in it; None without one, where that is allowed. Raises SheetError."""
    logins = _logins(cells, ("login", "api_key")) or _logins(cells, ("user", "options"))
    if len(logins) > 1:
        places = _listed(cell.position for cell, _ in logins)
        raise errors.SheetError(f"two logins, in {places}: a workbook has exactly one; delete the others")
    if logins:
        return logins[0]
    looking_up = [cell.position for cell in cells if any(call.function.looks_up for call in cell.parsed.calls)]
    if looking_up and not optional:
        raise errors.SheetError(
            f"no login: {_listed(looking_up)} use the add-in's functions, which need exactly one cell with "
            '=NEXAR_SUPPLY_LOGIN("client id", "client secret"); add it, or use --api-key'
        )
    return None


def _logins(cells: Iterable[CallCell], results: Sequence[str]) -> list[tuple[CallCell, FunctionCall]]:
    return [(cell, call) for cell in cells for call in cell.parsed.calls if call.function.result in results]


def _listed(positions: Iterable[CellPosition]) -> str:
    names = [str(position) for position in positions]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def workbook_login(cell: CellPosition, call: FunctionCall, arguments: dict[Parameter, str]) -> WorkbookLogin:
    """Return the login of a call with these arguments."""
    nexar = call.function.result == "login"
    return WorkbookLogin(
        cell,
        ClientId(arguments["client_id"]) if nexar else None,
        Secret(arguments.get("client_secret", "")),
        Excluded(_is_true(arguments.get("exclude_datasheets", "")), _is_true(arguments.get("exclude_lead_time", ""))),
    )


def _is_true(text: str) -> bool:
    return text.casefold() in ("true", "1")
