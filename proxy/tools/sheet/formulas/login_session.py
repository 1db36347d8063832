"""Opens the formulas of a file as a job, and says with which credentials their parts are fetched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy import errors
from proxy.tools.sheet import libreoffice
from proxy.tools.sheet.formulas import login
from proxy.tools.sheet.formulas.job import FormulaJob, FormulaOptions
from proxy.tools.sheet.package.workbook import open_package
from proxy.tools.sheet.parts import PartQuery
from proxy.tools.sheet.sources import ApplicationLogin


@contextmanager
def opened(
    file: Path,
    options: FormulaOptions,
    program: Path | None,
    fetched_before: Callable[[PartQuery], float | None],
) -> Iterator[FormulaJob]:
    """Open a workbook. `program` is LibreOffice; by default that on PATH, if any. Raises SheetError."""
    found = libreoffice.find_program(program)
    office = None if found is None else libreoffice.LibreOffice(found)
    with open_package(file) as workbook:
        yield FormulaJob(workbook, options, office, fetched_before)


class LoginSession:
    """The login of a workbook in one run."""

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
