"""Numbers in the prose of pages are those of the code."""

import pytest

from nexar_sandbox import applications
from nexar_sandbox.legacy_v3 import endpoints, settings
from proxy import config, model
from proxy.alerts import dispatcher, monitor, receivers
from proxy.gateway import callers as gateway_callers
from proxy.gateway.cache import shared
from proxy.gateway.quota import accounts, burn_down, exhaustion, ledger, reconciliation, reservations
from proxy.planning import match
from proxy.shadow import controller, queue
from proxy.stores import sqlite_schema
from proxy.telemetry import activity, callers
from proxy.tools.compare import redaction
from proxy.tools.compare.judging import counting, tally
from proxy.tools.sheet.columns import lines
from proxy.upstream import http_post, policies
from proxy.upstream.auth import backoff, token_cache, token_requests

from .conftest import Page

THRESHOLDS = ", ".join(map(str, config.AlertSettings().thresholds[:-1]))
RETRIED = sorted(receivers.RETRIED_STATUSES)
INHERITED = receivers.INHERITED
A_SECOND, A_QUARTER, A_HALF_DAY, A_WEEK = (
    f"{window.count:,}".replace(",", " ") for window in token_requests.RATE_LIMITS
)
STATED = {
    "docs/how-to/alerts.md": [
        "about 2 s, 10 s, 1 min, 5 min, 15 min, 30 min and 1 h",
        f"At most {dispatcher.PENDING_MAX} wait",
        f"a 5xx, {', '.join(map(str, RETRIED[:-1]))} and {RETRIED[-1]}",
        f"{', '.join(INHERITED[:-1])} and {INHERITED[-1]}",
    ],
    "docs/how-to/compare.md": [f"{queue.BYTES_MAX // 2**20} MB of responses", "every five seconds at most"],
    "docs/how-to/end-a-migration.md": [
        f"writes its counts every {gateway_callers.INTERVAL_SECONDS:g} seconds",
        f"counts up to {callers.CALLERS_MAX} pairs of endpoint and User-Agent",
        f"without a valid key {callers.UNKNOWN_MAX}",
        f"counted as `{callers.OTHERS}`",
        f"cut at {activity.USER_AGENT_MAX} characters",
    ],
    "docs/explanation/costs.md": [
        f"exceed {model.PARTS_MAX} parts",
        f"among {match.CANDIDATES} parts",
        "`translation.single_query: supSearchMpn`",
        f"for another worker for more than {shared.WAIT_SECONDS:g} seconds",
    ],
    "docs/explanation/faults.md": [
        f"up to {policies.BACKOFF:g} s, then {2 * policies.BACKOFF:g} s, at most {policies.BACKOFF_MAX:g} s",
        f"a fifth of them, {policies.BUDGET_START:g} at the start, and at most {policies.BUDGET_MAX:g} saved up",
        "at least half of `first_byte_seconds` or of `total_seconds`, whichever is shorter",
        f"for `coalescing.stall_seconds` ({config.CoalescingSettings().stall_seconds:g})",
        f"{A_SECOND} requests a second, {A_QUARTER} in 15 minutes",
        f"{A_HALF_DAY} in 12 hours, {A_WEEK} a week",
        f"delays the others by {token_requests.LOCK_SECONDS:g} seconds",
        f"renewed {token_cache.RENEWAL_LEAD / 60:g} to {token_cache.RENEWAL_LEAD / 30:g} minutes before its end",
        f"8, then {backoff.FAILURE_MAX:g} seconds; after refused credentials for {backoff.REFUSED_SECONDS:g};",
        f"{backoff.RETRY_AFTER_MAX / 60:g} minutes at most",
        f"in the next {backoff.REFUSED_SECONDS:g} seconds",
    ],
    "docs/explanation/quota.md": [
        f"{THRESHOLDS} or {config.AlertSettings().thresholds[-1]} % unless `alerts.thresholds`",
        f"when it was not heard for {reservations.LEASE_SECONDS:.0f} seconds",
        f"each learns within {reservations.REFRESH_SECONDS:.0f} second what",
        "settled after a fifth of a second",
        f"The pace is that of the last {burn_down.DAYS} days",
        f"the last {reservations.DAYS_KEPT} days and {reservations.MONTHS_KEPT} months on which anything was spent",
        f"Once in {reconciliation.INTERVAL_SECONDS / 3600:.0f} hours",
    ],
    "docs/reference/comparison.md": [
        f"texts to {redaction.TEXT_MAX} characters",
        f"to {redaction.ENTRIES_MAX} entries, nesting to {redaction.DEPTH_MAX} levels",
        f"there are {tally.GROUPS_OF_A_SORT} groups of a kind and cause at an endpoint and {tally.GROUPS}",
        f"{tally.ROWS} pairs of client and endpoint, and {tally.FAILURES} reasons of failures",
    ],
    "docs/reference/configuration.md": [f"needs SQLite {'.'.join(map(str, sqlite_schema.LIBRARY))} or later"],
    "docs/reference/sandbox-data.md": [
        f"may make {settings.LegacySettings().requests_per_second} requests in a second",
        f"more than {endpoints.MAX_TARGET} bytes",
        f"An API key, `{settings.LegacySettings().apikeys[0]}`",
    ],
    "docs/reference/sandbox.md": [f"{applications.DEFAULT_APPLICATION.part_limit} in a month unless [`--plan`]"],
    "docs/reference/sheet.md": [f"{lines.LINES_MAX:,}".replace(",", " ") + " lines"],
}


@pytest.mark.parametrize("name", STATED)
def test_stated_numbers_are_those_of_the_code(pages: dict[str, Page], name: str) -> None:
    words = " ".join(pages[name].text.split())
    assert [statement for statement in STATED[name] if statement not in words] == []


def test_numbers_in_words_are_those_of_the_code() -> None:
    assert list(dispatcher.DELAYS) == [2, 10, *(60 * minutes for minutes in (1, 5, 15, 30, 60))]
    assert (monitor.HOLD_SECONDS, monitor.CLIENTS_SECONDS) == (60, 300)
    assert (policies.RETRY_SHARE, http_post.FAIR_SHARE, ledger.SETTLE_SECONDS) == (1 / 5, 1 / 2, 1 / 5)
    assert exhaustion.WITHOUT_END_SECONDS == accounts.DAY_SECONDS
    assert (controller.NOTE_SECONDS, counting.SAMPLES) == (5.0, 3)
