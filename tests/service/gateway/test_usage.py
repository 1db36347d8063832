"""Usage of accounts: rows of commands, and the status that responses show."""

from typing import Any

from service.gateway.world import START, Runs, Upstream, World, client, uid

from proxy import config, errors
from proxy.gateway.applications import Applications, Client
from proxy.gateway.process import ProcessState
from proxy.gateway.quota import Quotas
from proxy.kit.clock import ManualClock
from proxy.planning.queries import matching
from proxy.store.protocol import Account

TWO_KEYS = tuple(
    config.ApiKeySettings(config.digest(key), name=name, parts=parts)
    for key, name, parts in (("a", "erp", 50), ("b", None, "unlimited"))
)
APPLICATIONS = Applications(
    {
        "demo": config.ApplicationSettings(apikeys=TWO_KEYS, parts=200),
        "other": config.ApplicationSettings(
            apikeys=(config.ApiKeySettings(config.digest("c")),), period="lifetime", client_id=config.ClientId("x")
        ),
    }
)


def test_the_row_of_an_application_precedes_those_of_its_keys() -> None:
    store: Any = None
    quotas, (whole, own) = Quotas(store, ManualClock(START)), APPLICATIONS.client("a").charged
    quotas.add([Account(whole.id, "2026-12")], 60, 30)
    quotas.add([Account(own.id, "2026-12")], 40, 0)
    rows = quotas.rows(APPLICATIONS.charged)
    assert [
        (row.application, row.key, row.period, row.used, row.uncertain, row.limit, row.remaining) for row in rows
    ] == [
        ("demo", None, "2026-12", 60, 30, 200, 110),
        ("demo", "erp", "2026-12", 40, 0, 50, 10),
        ("demo", "2", "2026-12", 0, 0, None, None),
        ("other", None, "lifetime", 0, 0, None, None),
        ("other", "1", "lifetime", 0, 0, None, None),
    ]
    assert [row.percent for row in rows] == [45.0, 80.0, None, None, None]
    assert [row.resets_at for row in rows] == ["2027-01-01T00:00:00Z"] * 3 + [None] * 2


def test_the_status_is_exact_for_what_the_process_booked_and_read_for_what_others_did(runs: Runs) -> None:
    async def main(world: World) -> None:
        erp, other = client(limit=10), client("other", limit=5)
        own, another = world.state(), world.state()
        for state, caller, number in ((own, erp, "A"), (another, other, "B")):
            process = world.process(state=state)
            await world.resolve(process, caller, [matching(0, 1, mpn=number)])
        assert used(own, erp) == used(another, other) == 1
        assert used(own, other) == 0
        await own.quotas.refresh([*erp.charged, *other.charged])
        assert used(own, other) == 1
        assert own.quotas.status(client()) == (2, None, 22 * 86_400)
        world.upstream.failures = [(errors.UpstreamUnreachable("cut", may_be_billed=True), True)]
        await world.resolve(world.process(state=own), erp, [matching(0, 1, mpn="C")])
        assert used(own, erp) == 1 + 1  # uncertain

    def used(state: ProcessState, caller: Client) -> int:
        return state.quotas.status(caller).used

    runs(Upstream({"A": [uid(1)], "B": [uid(2)]}), main)
