"""Tests of alerts from their causes to a receiver: each event is provoked on the sandbox."""

from support import running_proxy
from support.redis_server import RedisServer
from together.alerts.conftest import ONE, StartAlerts
from together.environment import target

from proxy import config
from proxy.alerts import monitor
from proxy.alerts.monitor import AlertMonitor
from proxy.gateway import callers


async def test_highest_threshold_is_reported_once_in_a_period(start_alerts: StartAlerts) -> None:
    plan = {"parts": 100, "apikeys": (config.ApiKeySettings(config.digest(running_proxy.KEY), "erp", parts=8),)}
    async with start_alerts(application=plan, alerts={"thresholds": (5, 25, 95)}) as environment:
        assert await environment.request() == 200
        alert = await environment.next_alert()
        assert (alert["event"], alert["severity"]) == ("quota.threshold", "warning")
        assert alert["details"] == {
            "quota_account": "demo/erp",
            "period": "2023-11",
            "used": 3,
            "uncertain": 0,
            "limit": 8,
            "remaining": 5,
            "threshold": 25,
        }
        assert alert["title"] == "demo/erp has used 3 of 8 parts (2023-11): 25 % of the limit is reached."
        assert environment.receiver.received[0].is_signed
        await environment.pass_time(120)
        # Not even by a process that starts anew.
        await AlertMonitor(lambda: environment.gateway).evaluate()
        environment.time.advance(20 * 86_400)
        await environment.gateway.quota.refresh()
        assert await environment.request() == 200
        assert (await environment.next_alert())["details"]["period"] == "2023-12"
        assert len(environment.receiver.received) == 2


async def test_used_limit_is_reported_when_requests_are_refused(start_alerts: StartAlerts) -> None:
    async with start_alerts(application={"parts": 4}, alerts={"thresholds": ()}) as environment:
        assert await environment.request() == 200
        assert await environment.request() == 429
        alert = await environment.next_alert()
        assert (alert["event"], alert["details"]["remaining"]) == ("quota.exhausted", 1)
        assert alert["details"]["cause"] == "limit of the configuration"


async def test_refusal_of_parts_that_a_key_leaves_to_others_is_reported(start_alerts: StartAlerts) -> None:
    keys = (config.ApiKeySettings(config.digest(running_proxy.KEY), "nightly", leaves=5),)
    plan = {"parts": 10, "apikeys": keys}
    async with start_alerts(application=plan, alerts={"thresholds": ()}) as environment:
        assert await environment.request() == 200
        assert await environment.request() == 429  # it may cost 3 of the 2 beside those that it leaves
        alert = await environment.next_alert()
        assert (alert["event"], alert["severity"], alert["details"]["leaves"]) == ("quota.exhausted", "warning", 5)
        assert alert["title"] == (
            "demo has 7 of 10 parts left (2023-11), and demo/nightly leaves the last 5 to other API keys: "
            "what may cost more is refused."
        )
        environment.time.advance(20 * 86_400)
        await environment.gateway.quota.refresh()
        assert (await environment.next_alert())["status"] == "resolved"


async def test_refusal_by_a_share_is_reported(start_alerts: StartAlerts) -> None:
    keys = (config.ApiKeySettings(config.digest(running_proxy.KEY), "nightly", parts="40%"),)
    async with start_alerts(application={"parts": 10, "apikeys": keys}, alerts={"thresholds": ()}) as environment:
        assert await environment.request() == 200
        assert await environment.request() == 429
        alert = await environment.next_alert()
        assert (alert["event"], alert["details"]["quota_account"]) == ("quota.exhausted", "demo/nightly")
        assert (alert["details"]["limit"], alert["details"]["remaining"]) == (4, 1)


async def test_forecast_is_reported_once_and_is_over_when_the_rate_falls(start_alerts: StartAlerts) -> None:
    cache, plan = {"seconds": 0}, {"parts": 30}
    async with start_alerts(application=plan, alerts={"thresholds": ()}, cache=cache) as environment:
        for _ in range(3):  # 3 parts a day
            assert await environment.request() == 200
            await environment.gateway.quota.refresh()
            await environment.pass_time(600)
            assert environment.receiver.events == []
            environment.time.advance(86_400 - 600)
        assert await environment.request() == 200
        await environment.gateway.quota.refresh()
        await environment.pass_time(600)
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["status"], alert["details"]["remaining"]) == ("quota.forecast", "firing", 18)
        assert alert["details"]["runs_out_at"][:10] in alert["title"]
        await environment.pass_time(3600)
        assert len(environment.receiver.received) == 1
        # Without further requests the pace falls, until 18 parts last to the end of the month.
        environment.time.advance(4 * 86_400)
        await environment.gateway.quota.refresh()
        await environment.pass_time(900)
        resolved = (await environment.receiver.wait(2))[1].json
        assert (resolved["status"], resolved["details"]["alert"]) == ("resolved", alert["id"])
        assert resolved["title"] == "demo is no longer expected to run out (2023-11)."


async def test_exhaustion_by_the_upstream_is_reported_until_it_is_reopened(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        account = environment.sandbox.default_application.application_id
        environment.sandbox.part_usage.record(account, 1000)
        assert await environment.request() == 429
        alert = await environment.next_alert()
        assert (alert["event"], alert["status"], alert["severity"]) == ("quota.exhausted", "firing", "critical")
        assert (alert["details"]["quota_account"], alert["details"]["until"]) == ("demo", "2023-12-01T00:00:00Z")
        await environment.pass_time(7200)
        assert len(environment.receiver.received) == 1
        await environment.gateway.store.clear_exhausted("demo")
        await environment.gateway.quota.refresh()
        await environment.pass_time(120)
        resolved = (await environment.receiver.wait(2))[1].json
        assert (resolved["status"], resolved["details"]["alert"]) == ("resolved", alert["id"])
        assert await environment.request() == 429
        assert (await environment.next_alert())["status"] == "firing"


async def test_short_opening_of_a_breaker_is_not_missed_and_flapping_is_reported_once(
    start_alerts: StartAlerts,
) -> None:
    upstream = {"breaker": config.BreakerSettings(failures=2, cooldown_seconds=5)}
    async with start_alerts(upstream=upstream) as environment:
        for _ in range(3):
            environment.fault("5xx on=graphql status=500")
            assert [await environment.request() for _ in range(3)] == [502, 502, 503]
            environment.fault()
            environment.time.advance(10)
            assert await environment.request() == 200
            # Closed again when the monitor looks.
            await environment.monitor.evaluate()
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["details"]["service"]) == ("breaker.open", "graphql")
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert environment.receiver.events == [("breaker.open", "firing"), ("breaker.open", "resolved")]


async def test_refused_credentials_are_reported(start_alerts: StartAlerts) -> None:
    wrong = {"client_secret": config.Secret("wr0ngPLANTED")}
    async with start_alerts(application=wrong) as environment:
        assert await environment.request() == 502
        alert = await environment.next_alert()
        assert (alert["event"], alert["details"]["application"]) == ("token.refused", "demo")
        assert "invalid_client" in alert["details"]["reason"]
        assert b"PLANTED" not in environment.receiver.received[0].body


async def test_token_limit_is_reported(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        environment.fault("429 on=token retry_after=40")
        assert await environment.request() == 503
        assert (await environment.next_alert())["event"] == "token.limit"
        environment.fault()
        environment.time.advance(60)
        assert await environment.request() == 200
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert environment.receiver.events == [("token.limit", "firing"), ("token.limit", "resolved")]


async def test_failing_token_requests_are_reported_after_three(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        environment.fault("5xx on=token status=500")
        for _ in range(3):
            assert environment.receiver.events == []
            assert await environment.request() in (502, 503)
            await environment.monitor.evaluate()
            environment.time.advance(30)
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["details"]["failures"]) == ("token.failing", 3)


async def test_unavailable_store_is_reported(start_alerts: StartAlerts, redis_server: RedisServer) -> None:
    async with start_alerts(store=redis_server.url) as environment:
        assert await environment.request() == 200
        redis_server.stop()
        try:
            await environment.gateway.quota.refresh()
            alert = await environment.next_alert()
            assert alert["event"] == "store.unavailable"
            await environment.pass_time(30)
            assert len(environment.receiver.received) == 1
        finally:
            redis_server.start()
        await environment.gateway.quota.refresh()
        await environment.pass_time(120)
        await environment.receiver.wait(2)
        assert environment.receiver.events[1] == ("store.unavailable", "resolved")


async def test_schema_drift_is_reported_and_again_when_more_is_gone(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        assert (await environment.monitor.schema.check()).state == "complete"
        environment.fault("missing-field field=SupPart.octopartUrl")
        await environment.monitor.schema.check()
        alert = await environment.next_alert()
        assert (alert["event"], alert["severity"]) == ("schema.drift", "critical")
        assert [each["place"] for each in alert["details"]["drifts"]] == ["SupPart.octopartUrl"]
        assert "Part.octopart_url" in alert["details"]["affected"]
        environment.fault("missing-field field=SupPart.octopartUrl", "missing-field field=SupPart.shortDescription")
        await environment.monitor.schema.check()
        assert (await environment.next_alert())["details"]["count"] == 2
        environment.fault()
        await environment.monitor.schema.check()
        await environment.pass_time(120)
        assert (await environment.receiver.wait(3))[2].json["status"] == "resolved"


async def test_client_that_calls_as_clients_are_looked_up_is_reported_once(start_alerts: StartAlerts) -> None:
    async with start_alerts() as environment:
        await environment.request()
        await environment.write_callers()
        for number in range(4):
            # A process that starts looks at once.
            looking = AlertMonitor(lambda: environment.gateway)
            environment.time.advance(callers.LEARNING_SECONDS)
            await looking.evaluate()
            environment.time.advance(monitor.CLIENTS_SECONDS)
            if number == 1:
                await environment.proxy.get(target(ONE), headers={"User-Agent": "crawler/1"})
                await environment.write_callers()
            await AlertMonitor(lambda: environment.gateway).evaluate()
            await environment.delivered()
        await environment.receiver.wait(1)
        assert [each["details"]["count"] for each in environment.receiver.alerts] == [1]


async def test_new_clients_of_some_minutes_are_one_alert(start_alerts: StartAlerts) -> None:
    async def call(user_agent: str) -> None:
        await environment.proxy.get(target(ONE), headers={"User-Agent": user_agent})

    async with start_alerts() as environment:
        await call("bom-tool/1")
        await environment.write_callers()
        await environment.pass_time(monitor.CLIENTS_SECONDS)
        # Where recording has just begun, everything is new.
        environment.time.advance(callers.LEARNING_SECONDS)
        await environment.pass_time(monitor.CLIENTS_SECONDS)
        assert environment.receiver.events == []
        for number in range(12):
            await call(f"crawler/{number}")
        await call("bom-tool/1")
        await environment.write_callers()
        await environment.pass_time(2 * monitor.CLIENTS_SECONDS)
        (alert,) = [each.json for each in await environment.receiver.wait(1)]
        assert (alert["event"], alert["severity"], alert["details"]["count"]) == ("client.new", "info", 12)
        assert alert["title"] == "12 programs use API keys that they had not used before."
        assert len(alert["details"]["clients"]) == 10
        await call("<!channel>")
        await environment.write_callers()
        await environment.pass_time(2 * monitor.CLIENTS_SECONDS)
        second = (await environment.receiver.wait(2))[1].json
        assert second["details"]["clients"][0]["user_agent"] == "<!channel>"
        assert "<" not in second["text"]
