"""Which programs will break: each API key with its verdict and the unsupported uses that it is based on."""

import csv
import io

import msgspec

from proxy.gateway.client_report import ClientReport, ClientUsage, UnsupportedUsage, Verdict, inert

TITLE = "Which of my programs will break"
CSV_COLUMNS = ("application", "key", "verdict", "last_seen", "use", "requests", "use_first_seen", "use_last_seen")
_ORDER: tuple[Verdict, ...] = ("breaks", "runs unchanged", "not seen")


class ClientVerdict(msgspec.Struct, frozen=True):
    """Verdict on an API key, `client`, in the days of a report; `last_seen` and `unsupported` are of all recorded
    days."""

    client: str
    verdict: Verdict
    last_seen: str | None
    unsupported: list[UnsupportedUsage]


def judged(report: ClientReport) -> list[ClientUsage]:
    """Return the clients that have a verdict: first those that break, with most unsupported uses."""
    named = (client for client in report.clients if client.verdict is not None)
    return sorted(named, key=lambda each: (_ORDER.index(each.verdict or "not seen"), -len(each.unsupported)))


def verdicts(report: ClientReport) -> list[ClientVerdict]:
    return [
        ClientVerdict(each.name, each.verdict or "not seen", each.last_seen, each.unsupported)
        for each in judged(report)
    ]


def csv_text(report: ClientReport) -> str:
    """Return the verdicts as CSV (RFC 4180): a row for each unsupported use, and one for a client without."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    for client in judged(report):
        names = client.application, client.key, client.verdict, client.last_seen or ""
        if not client.unsupported:
            writer.writerow((*names, "", "", "", ""))
        for use in client.unsupported:
            writer.writerow((*names, inert(use.name), use.requests, use.first_seen, use.last_seen))
    return text.getvalue()
