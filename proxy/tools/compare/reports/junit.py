"""JUnit XML report: a suite per endpoint, a case per client, and a suite for the run itself.

A row that is not ready is a failure, an inconclusive one is skipped. Requests that could not be compared are errors of
the run.
"""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from proxy.tools.compare.reports import ordering, visible, words
from proxy.tools.compare.results import ComparisonResult, DifferenceGroup, EndpointResult

OUTCOMES = ("failure", "error", "skipped")


def render(result: ComparisonResult) -> str:
    """Render the document. Characters that XML does not permit are escaped as in JSON."""
    top = Element("testsuites", name="v3bridge compare", time=f"{max(0.0, result.ended - result.started):.3f}")
    top.append(_run(result))
    for endpoint in dict.fromkeys(row.endpoint for row in result.rows):
        suite = _suite(endpoint)
        for row in (row for row in result.rows if row.endpoint == endpoint):
            _judge(_case(suite, row.client), row, result)
        top.append(_counted(suite))
    _counted(top)
    indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(top, encoding="unicode") + "\n"


def _run(result: ComparisonResult) -> Element:
    suite = _suite("run")
    case = _case(suite, "verdict")
    if result.verdict == "inconclusive":
        _outcome(case, "skipped", words.headline(result))
    elif result.verdict == "not ready":
        _outcome(case, "failure", words.headline(result), "\n".join(result.failed))
    for rule in ordering.rules(result):
        case = _case(suite, f"rule: {rule.name}")
        if rule.expired:
            _outcome(case, "failure", words.used(rule), rule.reason)
    for failure in result.failures:
        place = f", the first at {failure.first_origin}" if failure.first_origin else ""
        message = f"{words.count(failure.requests, 'request')} could not be compared{place}"
        _outcome(_case(suite, f"not compared: {failure.reason}"), "error", message)
    if not result.complete:
        _outcome(_case(suite, "complete"), "error", "the run is not complete")
    return _counted(suite)


def _judge(case: Element, row: EndpointResult, result: ComparisonResult) -> None:
    if row.verdict == "inconclusive":
        _outcome(case, "skipped", f"inconclusive: {words.row(row)}")
    elif row.verdict == "not ready":
        groups = [group for group in ordering.groups(result) if group.counts and row.client in group.clients]
        text = "\n\n".join(_told(group, result) for group in groups if group.endpoint == row.endpoint)
        _outcome(case, "failure", words.row(row), text)
    else:
        SubElement(case, "system-out").text = words.row(row)


def _told(group: DifferenceGroup, result: ComparisonResult) -> str:
    lines = [
        f"{visible.line(group.path)}: {words.KINDS[group.kind]}, on {words.seen_on(group, result)}",
        f"  cause: {group.cause}: {visible.line(group.why)}",
    ]
    for sample in group.samples[:1]:
        lines.append(f"  seen at {visible.line(sample.place)} ({visible.line(sample.origin)})")
        lines += [
            f"  {side}: {'nothing' if text is None else visible.line(text)}"
            for side, text in (("baseline", sample.baseline), ("candidate", sample.candidate))
        ]
        lines += [f"  message: {visible.line(sample.message)}"] if sample.message else []
    return "\n".join(lines)


def _suite(name: str) -> Element:
    return Element("testsuite", name=visible.line(name))


def _case(suite: Element, name: str) -> Element:
    return SubElement(suite, "testcase", classname=f"v3bridge.compare {suite.get('name')}", name=visible.line(name))


def _outcome(case: Element, kind: str, message: str, text: str = "") -> None:
    outcome = SubElement(case, kind, message=visible.line(message))
    outcome.text = visible.block(text) or None


def _counted(suite: Element) -> Element:
    """Add the numbers of tests, failures, errors and skipped cases, which readers of the format expect."""
    suite.set("tests", str(len(list(suite.iter("testcase")))))
    for kind, name in zip(OUTCOMES, ("failures", "errors", "skipped"), strict=True):
        suite.set(name, str(len(list(suite.iter(kind)))))
    return suite
