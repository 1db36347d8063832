"""Tests of the harness: what the processes report is what happened."""

from acceptance import running

TARGET = "/v3/parts/match?apikey=KEY-1&queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"
APPLICATION = "applications: {{shop: {{{}, apikeys: [KEY-1]}}}}"
HOURS = 3_600


def test_part_is_billed_once_over_a_restart(processes: running.Processes, sandbox: running.Sandbox) -> None:
    text = f"{sandbox.upstream}\nstore: sqlite:store\n{APPLICATION.format(sandbox.credentials)}"
    service = processes.service(text, "--workers", "2")
    assert service.get(TARGET).json["results"][0]["items"][0]["mpn"] == "SN74S74N"
    billed = sandbox.parts, sandbox.requests("token")
    service.restart()
    assert service.get(TARGET).status == 200
    assert (sandbox.parts, sandbox.requests("token")) == billed == (3, 1)
    assert running.request(service.operators, "/readyz").status == 200
    assert service.stop() == 0


def test_clock_turns_the_time_of_service_and_sandbox(processes: running.Processes, clock: running.Clock) -> None:
    sandbox = processes.sandbox(clock=clock)
    service = processes.service(f"{sandbox.upstream}\n{APPLICATION.format(sandbox.credentials)}", clock=clock)
    for hours, parts in ((0, 3), (23, 3), (1, 6)):
        clock.turn(hours * HOURS)
        assert service.get(TARGET).status == 200
        assert sandbox.parts == parts


def test_upstream_knows_applications_by_their_tokens(processes: running.Processes) -> None:
    upstream = processes.upstream()
    upstream.script["id-1"] = [{"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}}]
    service = processes.service(
        f"{upstream.upstream}\n{APPLICATION.format('client_id: id-1, client_secret: a-secret')}"
    )
    assert service.get(TARGET).json["results"][0]["items"] == []
    assert [each.name for each in upstream.of("id-1")] == ["supMultiMatch"]
    assert upstream.tokens == ["id-1"]


def test_command_returns_exit_code_and_output(processes: running.Processes) -> None:
    folder = processes.new_folder()
    assert running.command("--version", folder=folder).stdout.startswith("v3bridge ")
    failed = running.command("serve", "--config", "missing.yaml", folder=folder)
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "missing.yaml" in failed.stderr
