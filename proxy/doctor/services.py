"""Findings about the identity service and the GraphQL service that do not depend on what was requested of them."""

from dataclasses import dataclass

from proxy import errors
from proxy.doctor.findings import CheckResult, found
from proxy.upstream import http_post


@dataclass(frozen=True, slots=True)
class CheckedService:
    """A service, whose responses should be `expected` at the address in `setting`. Codes of its diagnoses begin with
    `prefix`."""

    prefix: str
    name: str
    expected: str
    setting: str

    def response_finding(self, reply: http_post.HttpResponse, error: errors.BridgeError) -> CheckResult:
        """Return the finding for a response that is no response of this service."""
        if message := http_post.wrong_service(reply, self.name, self.expected, self.setting):
            # An error page of a gateway in front of the service is no wrong address.
            if reply.status < 500:
                advice = f"check the address in {self.setting}"
                is_page = reply.body.lstrip().startswith(b"<")
                return self._found("wrong_address", message.partition(";")[0], "" if is_page else advice)
            return self._found("failing", f"{self.name} responds with HTTP {reply.status}")
        return self._found("failing" if isinstance(error, errors.UpstreamFault) else "unreadable", error.message)

    def failure_finding(self, error: errors.ServerError) -> CheckResult:
        """Return the finding for a request without a whole response."""
        if isinstance(error.__cause__, TimeoutError):
            return self._found("timeout", error.message)
        unreadable = isinstance(error, errors.UpstreamUnreadable)
        return self._found("unreadable" if unreadable else "disconnects", error.message)

    def _found(self, code: str, text: str, advice: str = "") -> CheckResult:
        return found(f"{self.prefix}_{code}", text, advice=advice)
