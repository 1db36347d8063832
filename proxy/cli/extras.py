"""Extras: the groups of packages that only some commands need, and the message where one is not installed."""

from types import TracebackType

from proxy import errors

EXTRAS = {
    "proxy.sandbox": "sandbox",
    "proxy.compare.sources.workbook": "xlsx",
    "proxy.compare": "compare",
    "proxy.stores": "redis",
    "proxy.telemetry": "otel",
}
"""The extra of pyproject.toml by the package whose imports need it; the first that fits counts."""


def missing_extra(error: ModuleNotFoundError) -> errors.StartError | None:
    """The error to show where a package of an extra is not installed; None where `error` has another cause."""
    importer = _importer(error.__traceback__)
    for package, extra in EXTRAS.items():
        if f"{importer}.".startswith(f"{package}."):
            return errors.StartError(f"{error.name} is not installed; install it with: pip install 'v3bridge[{extra}]'")
    return None


def _importer(traceback: TracebackType | None) -> str:
    """The name of the innermost module of this program in a traceback."""
    found = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        found = name if name.startswith("proxy.") else found
        traceback = traceback.tb_next
    return found
