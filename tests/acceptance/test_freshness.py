"""Results are fresh for 23.5 hours and stale to 24 while the upstream fails; those without parts five minutes."""

from acceptance import bills, running

HOUR = 3_600.0


def test_results_are_fresh_then_stale_while_the_upstream_fails_then_gone(
    processes: running.Processes, clock: running.Clock
) -> None:
    sandbox = bills.sandbox(processes, clock=clock)
    service = processes.service(bills.configuration(sandbox), clock=clock)
    known, unknown = bills.match("SN74S74N"), bills.match("none such")

    def results() -> object:
        response = service.get(known)
        assert response.status == 200, response.text
        return response.json["results"]

    first = results()
    service.get(unknown)
    asked = sandbox.requests("graphql")
    for minutes, more in ((4, 0), (2, 1)):
        clock.turn(minutes * 60)
        assert service.get(unknown).json["results"][0]["items"] == []
        assert sandbox.requests("graphql") - asked == more
    clock.turn(23.4 * HOUR - 360)
    assert results() == first
    assert sandbox.parts == 3
    sandbox.inject("5xx")
    clock.turn(0.3 * HOUR)
    assert results() == first
    assert sandbox.requests("graphql") > asked + 1
    clock.turn(0.4 * HOUR)
    assert service.get(known).status == 503
    sandbox.inject()
    running.until(lambda: service.get(known).status == 200, "the upstream is asked again")
    assert results() == first
    assert sandbox.parts == 6
