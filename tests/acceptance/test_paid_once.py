"""A part is paid once in a day, whoever asks: workers, restarts, services on one Redis, requests at the same moment."""

import concurrent.futures
import random

import pytest
from acceptance import bills, running
from support.redis_server import RedisServer

LINES, QUERIES, CLIENTS = 300, 20, 4


@pytest.fixture(scope="module")
def sandbox(module_processes: running.Processes) -> running.Sandbox:
    return bills.sandbox(module_processes, LINES)


def request_list(service: running.Service) -> None:
    """Request the list of 300 lines in an order of its own, by several clients, and see that no line lacks its part."""
    lines = random.sample(bills.numbers(LINES), LINES)

    def request(first: int) -> None:
        wanted = lines[first : first + QUERIES]
        assert bills.found(service.get(bills.match(*wanted))) == wanted

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(request, range(0, LINES, QUERIES)))


def check_paid(service: running.Service, sandbox: running.Sandbox, before: int) -> None:
    assert sandbox.parts - before == LINES
    assert bills.usage(service)["shop"][:3] == (LINES, 0, 0)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_list_costs_each_part_once_over_workers_and_a_restart(
    processes: running.Processes, sandbox: running.Sandbox, workers: str
) -> None:
    service, before = processes.service(bills.configuration(sandbox), "--workers", workers), sandbox.parts
    request_list(service)
    request_list(service)
    service.restart()
    request_list(service)
    check_paid(service, sandbox, before)


def test_list_costs_each_part_once_for_two_services_on_one_redis(
    processes: running.Processes, sandbox: running.Sandbox, redis_server: RedisServer
) -> None:
    text, before = bills.configuration(sandbox, redis_server.url), sandbox.parts
    services = [processes.service(text) for _ in range(2)]
    for service in services:
        request_list(service)
    check_paid(services[0], sandbox, before)


def test_equal_requests_at_once_over_two_workers_cost_one_part(
    processes: running.Processes, sandbox: running.Sandbox
) -> None:
    service, before = processes.service(bills.configuration(sandbox), "--workers", "2"), sandbox.parts
    (number,) = bills.numbers(1)
    sandbox.inject("latency ms=300")
    responses = bills.at_once(service.get, [bills.match(number)] * 40)
    sandbox.inject()
    assert [bills.found(each) for each in responses] == [[number]] * 40
    assert sandbox.parts - before == 1


def test_sheet_and_service_pay_for_each_part_once(processes: running.Processes, sandbox: running.Sandbox) -> None:
    service, before = processes.service(bills.configuration(sandbox)), sandbox.parts
    wanted = bills.numbers(20)
    assert bills.found(service.get(bills.match(*wanted[:10]))) == wanted[:10]
    bom = service.file.parent / "BOM.csv"
    bom.write_text("\n".join(["MPN", *wanted]))
    fill = ("sheet", "fill", "BOM.csv", "--columns", "stock,second_source", "--config", str(service.file), "--yes")
    done = running.command(*fill, folder=bom.parent)
    assert done.returncode == 0, done.stderr
    assert "40 distinct queries, 20 in the cache" in done.stderr
    assert bills.found(service.get(bills.match(*wanted))) == wanted
    assert sandbox.parts - before == 20
