"""The one login of a workbook, in whichever add-in's words, and how long it lasts."""

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from proxy import __version__, errors
from proxy.config import ClientId, Secret, store_place
from proxy.tools.sheet.formulas.calls import FunctionCall
from proxy.tools.sheet.formulas.functions import Parameter
from proxy.tools.sheet.formulas.references import CellPosition
from proxy.tools.sheet.formulas.results import Excluded
from proxy.tools.sheet.formulas.workbook import CallCell
from proxy.tools.sheet.sources import ApplicationLogin

READY = "The Nexar Supply Add-in is ready!"
MISSING = "Please provide your Nexar application Client Id and Secret"
REFUSED = "Unable to login to Nexar application, check Client Id and Secret"
EXPIRED = "The access token has expired, please refresh login!"
OCTOPART_READY = "Octopart Add-In is ready!"
OCTOPART_OBSOLETE = "[Obsolete] Please use =OCTOPART_SET_APIKEY(...)"
OCTOPART_OPTIONS = "The following options were set:"

LOGIN_SECONDS = 86_400.0  # as in the add-in, and of the tokens of the identity service
_LISTED = 5  # cells that an error names


class WorkbookLogin(NamedTuple):
    """The login of a workbook: client credentials, or the API key of the proxy that the Octopart add-in had."""

    cell: CellPosition
    client_id: ClientId | None
    secret: Secret
    """Client secret or API key; empty where the cell has none."""
    excluded: Excluded
    has_credentials: bool

    def credentials(self, file: Path, now: float, *, refresh: bool) -> tuple[str | None, ApplicationLogin | None]:
        """Return the API key or the client credentials. The login of the Octopart script has neither.

        Raises SheetError, in the add-in's words, without credentials, or if the login is older than 24 hours.
        """
        if not self.has_credentials:
            return None, None
        if not self.secret.reveal() or (self.client_id is not None and not self.client_id):
            raise errors.SheetError(f"{file}: {self.cell}: {MISSING}; fill its cells, or use --api-key")
        if self.client_id is None:
            return self.secret.reveal(), None
        if not refresh and LoginRecords().is_expired(self.client_id, now):
            raise errors.SheetError(f"{file}: {self.cell}: {EXPIRED} Run again with --refresh-login")
        return None, ApplicationLogin(self.client_id, self.secret, *self.excluded)


class LoginRecords:
    """When the applications of workbooks logged in, by a digest of the client id. In the state folder."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or store_place.state_folder() / "sheet"
        self._file = folder / "logins.json"

    def is_expired(self, client_id: ClientId, now: float) -> bool:
        """Return true if the last login was longer ago than a login lasts; False for the first one."""
        time = self._times().get(_digest(client_id))
        return time is not None and now - time >= LOGIN_SECONDS

    def note(self, client_id: ClientId, now: float, *, refreshed: bool) -> None:
        """Note a successful login. It lasts from the first one on, unless it was refreshed."""
        times = self._times()
        if refreshed or self.is_expired(client_id, now) or _digest(client_id) not in times:
            times[_digest(client_id)] = now
            # Without a record the next run logs in as if it were the first.
            with contextlib.suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._file.write_bytes(msgspec.json.encode(times))

    def _times(self) -> dict[str, float]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}


def _digest(client_id: ClientId) -> str:
    return hashlib.blake2b(client_id.encode(), digest_size=12).hexdigest()


def login_call(file: Path, cells: Sequence[CallCell], *, optional: bool) -> tuple[CallCell, FunctionCall] | None:
    """Return the cell with the login and the call in it; None without one, where that is allowed. Raises SheetError."""
    logins = _logins(cells, ("login", "api_key")) or _logins(cells, ("user", "options"))
    if len(logins) > 1:
        places = _listed(cell.position for cell, _ in logins)
        raise errors.SheetError(f"{file}: two logins, in {places}: a workbook has exactly one; delete the others")
    if logins:
        return logins[0]
    looking_up = [cell.position for cell in cells if any(call.function.looks_up for call in cell.parsed.calls)]
    if looking_up and not optional:
        raise errors.SheetError(
            f"{file}: no login: {_listed(looking_up)} use the add-in's functions, which need exactly one cell with "
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
        call.function.logs_in,
    )


def session_text(cell: CellPosition, call: FunctionCall, login: WorkbookLogin | None) -> str:
    """Return what a function says about the add-in itself. Tokens are not shown."""
    if call.function.result == "user" and login is not None and login.cell == cell:
        return OCTOPART_READY
    excluded = Excluded() if login is None else login.excluded
    texts = {
        "login": READY,
        "api_key": OCTOPART_READY,
        "user": OCTOPART_OBSOLETE,
        "options": OCTOPART_OPTIONS,
        "features": "Datasheets: {:d}; LeadTime: {:d}".format(*(not each for each in excluded)),
        "version": f"v3bridge {__version__}",
    }
    return texts.get(call.function.result, "")


def _is_true(text: str) -> bool:
    return text.casefold() in ("true", "1")
