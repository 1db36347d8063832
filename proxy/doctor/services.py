"""Findings about the identity service and the GraphQL service that do not depend on what was requested of them."""

from typing import NamedTuple

from proxy import errors
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis
from proxy.upstream import http_post


class ServiceDiagnoses(NamedTuple):
    """Diagnoses of one service, whose responses should be `expected` at the address in `setting`."""

    name: str
    expected: str
    setting: str
    timeout: Diagnosis
    disconnected: Diagnosis
    failing: Diagnosis
    unreadable: Diagnosis
    wrong_address: Diagnosis

    def of_response(self, reply: http_post.HttpResponse, error: errors.BridgeError) -> CheckResult:
        """Return the finding for a response that is no response of this service."""
        if message := http_post.wrong_service(reply, self.name, self.expected, self.setting):
            # An error page of a gateway in front of the service is no wrong address.
            if reply.status < 500:
                advice = f"check the address in {self.setting}"
                is_page = reply.body.lstrip().startswith(b"<")
                return self.wrong_address.finding(message.partition(";")[0], advice="" if is_page else advice)
            return self.failing.finding(f"{self.name} responds with HTTP {reply.status}")
        return (self.failing if isinstance(error, errors.UpstreamFault) else self.unreadable).finding(error.message)

    def of_failure(self, error: errors.ServerError) -> CheckResult:
        """Return the finding for a request without a whole response."""
        if isinstance(error.__cause__, TimeoutError):
            return self.timeout.finding(error.message)
        unreadable = isinstance(error, errors.UpstreamUnreadable)
        return (self.unreadable if unreadable else self.disconnected).finding(error.message)


def diagnoses(prefix: str, name: str, expected: str, setting: str) -> ServiceDiagnoses:
    """Return the diagnoses of a service, whose codes begin with `prefix`."""
    return ServiceDiagnoses(
        name,
        expected,
        setting,
        timeout=Diagnosis(
            f"{prefix}_timeout",
            f"{name} is overloaded, or something in front of it holds its responses back",
            "try again in some minutes; if it stays, raise upstream.timeouts, or ask the service's operators",
        ),
        disconnected=Diagnosis(
            f"{prefix}_disconnects",
            f"{name}, a firewall or a proxy closes the connection without a response; so does a server that wants "
            "client certificates, or one that expects TLS at an address with http://",
            f"try again in some minutes; if it stays, check that {setting} begins with https://, and ask who runs the "
            "firewall or the proxy on the way, and whether upstream.tls.client_cert is needed",
        ),
        failing=Diagnosis(
            f"{prefix}_failing",
            f"{name} has a failure of its own (HTTP 5xx)",
            "wait: nothing here is wrong; look at the status page of the service if it lasts",
        ),
        unreadable=Diagnosis(
            f"{prefix}_unreadable",
            f"{name} or something in front of it sends responses that are cut, empty or of another form",
            f"check {setting}, and what a proxy or firewall on the way does to responses",
        ),
        wrong_address=Diagnosis(
            f"{prefix}_wrong_address",
            "the address is that of another page, or a login page of the network responds in the service's place",
            f"check the address in {setting}; open it in a browser on this machine: a login page of the network, such "
            "as a guest network's, shows there",
        ),
    )
