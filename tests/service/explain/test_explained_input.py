"""Requests that differ in values only are of one kind."""

from support import cases

from proxy.explain import explained_input
from proxy.traffic.v3_request import V3Request, parse_target


def request(target: str, times: int = 1) -> V3Request:
    path, query, _ = parse_target(target)
    return V3Request(path, query, times=times, origin="log:1")


@cases.parametrize("first, second, equal")
def test_kind(first: str, second: str, equal: bool) -> None:
    assert (explained_input.key_of(request(first)) == explained_input.key_of(request(second))) is equal
