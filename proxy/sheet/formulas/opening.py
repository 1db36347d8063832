"""Opens the formulas of a file as a job, and says with which credentials their parts are fetched."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy import errors
from proxy.sheet import libreoffice
from proxy.sheet.formulas import login
from proxy.sheet.formulas.job import FormulaJob, FormulaOptions
from proxy.sheet.package.workbook import open_package
from proxy.sheet.parts import PartQuery
from proxy.sheet.sources import ApplicationLogin


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


def application_login(
    job: FormulaJob, records: login.LoginRecords, now: float, *, refresh: bool
) -> ApplicationLogin | None:
    """Return the client credentials of the workbook's login; None where it has none, as that of the Octopart script.

    Raises SheetError, in the add-in's words, without credentials, or if the last login is older than 24 hours.
    """
    found = job.login
    if found is None or found.client_id is None:
        return None
    if not found.is_complete:
        raise errors.SheetError(f"{found.cell}: {login.MISSING}; fill its cells, or use --api-key")
    if not refresh and records.is_expired(found.client_id, now):
        raise errors.SheetError(f"{found.cell}: {login.EXPIRED} Run again with --refresh-login")
    return ApplicationLogin(found.client_id, found.secret, found.excluded.datasheets, found.excluded.lead_times)
