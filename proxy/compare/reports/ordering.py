"""Order of groups, rows and rules in reports: what stands in the way of switching over first, the largest first."""

from collections.abc import Iterable

from proxy.compare.results import ComparisonResult, DifferenceGroup, EndpointResult, LatencyDistribution, RuleUse


def groups(result: ComparisonResult) -> list[DifferenceGroup]:
    """Those that count first, by the requests that have them."""
    return sorted(result.groups, key=lambda group: (not group.counts, -group.requests, -group.differences, group.path))


def rows(result: ComparisonResult) -> list[EndpointResult]:
    """A client's rows together, clients and endpoints as they come in the result."""
    clients = list(dict.fromkeys(row.client for row in result.rows))
    return sorted(result.rows, key=lambda row: clients.index(row.client))


def rules(result: ComparisonResult) -> list[RuleUse]:
    """Expired ones first, then unused ones, then by what they hid."""
    return sorted(result.rules, key=lambda rule: (not rule.expired, rule.hidden > 0, -rule.hidden, rule.name))


def times(found: Iterable[LatencyDistribution]) -> list[tuple[str, dict[str, LatencyDistribution]]]:
    """Endpoints as they come, each with its sides by name."""
    by_endpoint: dict[str, dict[str, LatencyDistribution]] = {}
    for each in found:
        by_endpoint.setdefault(each.endpoint, {})[each.side] = each
    return list(by_endpoint.items())
