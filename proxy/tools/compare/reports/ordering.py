"""Order of groups, rows and rules in reports: the most important obstacles to switching over come first."""

from collections.abc import Iterable

from proxy.tools.compare.results import ComparisonResult, DifferenceGroup, EndpointResult, LatencyDistribution, RuleUse


def groups(result: ComparisonResult) -> list[DifferenceGroup]:
    """Sort groups: counting ones first, then by number of requests."""
    return sorted(result.groups, key=lambda group: (not group.counts, -group.requests, -group.differences, group.path))


def rows(result: ComparisonResult) -> list[EndpointResult]:
    """Sort rows by client, in the order of the result."""
    clients = list(dict.fromkeys(row.client for row in result.rows))
    return sorted(result.rows, key=lambda row: clients.index(row.client))


def rules(result: ComparisonResult) -> list[RuleUse]:
    """Sort rules: expired ones first, then unused ones, then by number of ignored differences."""
    return sorted(result.rules, key=lambda rule: (not rule.expired, rule.ignored > 0, -rule.ignored, rule.name))


def times(distributions: Iterable[LatencyDistribution]) -> list[tuple[str, dict[str, LatencyDistribution]]]:
    """Group latencies by endpoint, in the order of the result, each with its sides by name."""
    by_endpoint: dict[str, dict[str, LatencyDistribution]] = {}
    for each in distributions:
        by_endpoint.setdefault(each.endpoint, {})[each.side] = each
    return list(by_endpoint.items())
