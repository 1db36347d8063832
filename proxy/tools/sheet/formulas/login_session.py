"""The login of a workbook in one run: with which credentials its parts are fetched, and how long it lasts."""

from pathlib import Path

from proxy import errors
from proxy.tools.sheet.formulas import login
from proxy.tools.sheet.formulas.job import FormulaJob
from proxy.tools.sheet.sources import ApplicationLogin


class LoginSession:
    """The login of the workbook that a job fills."""

    def __init__(self, file: Path, job: FormulaJob, now: float, *, refresh: bool) -> None:
        self._file = file
        self._job = job
        self._now = now
        self._refresh = refresh
        self._records = login.LoginRecords()

    def credentials(self) -> tuple[str | None, ApplicationLogin | None]:
        """Return the API key or the client credentials of the login. That of the Octopart script has neither.

        Raises SheetError, in the add-in's words, without credentials, or if the login is older than 24 hours.
        """
        found = self._job.login
        if found is None or not found.has_credentials:
            return None, None
        if not found.is_complete:
            raise errors.SheetError(f"{self._file}: {found.cell}: {login.MISSING}; fill its cells, or use --api-key")
        if found.client_id is None:
            return found.secret.reveal(), None
        if not self._refresh and self._records.is_expired(found.client_id, self._now):
            raise errors.SheetError(f"{self._file}: {found.cell}: {login.EXPIRED} Run again with --refresh-login")
        excluded = found.excluded
        return None, ApplicationLogin(found.client_id, found.secret, excluded.datasheets, excluded.lead_times)

    def end(self, *, refused: bool, used: bool) -> None:
        """Note when the login was used first or renewed, or write into its cell that it was refused."""
        found = self._job.login
        if found is None or found.client_id is None:
            return
        if refused:
            self._job.refuse_login()
        elif used or self._refresh:  # a renewed one has lost its token: the next request gets another
            self._records.note(found.client_id, self._now, refreshed=self._refresh)
