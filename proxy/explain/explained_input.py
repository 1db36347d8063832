"""Explanations of what `v3bridge explain` is given: a text, or a file of requests by its kinds of requests."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from proxy import errors
from proxy.explain import curl, inputs, kinds
from proxy.explain.explainer import Explainer
from proxy.explain.explanation import ExplainedFile, Explanation
from proxy.traffic.sources import source as sources
from proxy.traffic.sources.clients import Clients
from proxy.traffic.v3_request import V3Request
from proxy.v3 import endpoints

KEYLESS = ("csv", "xlsx", "recording")  # kinds of files without API keys


class InputExplainer:
    """Explains texts and files as requests of one application. `kind` is that of a file, where it is not detected.

    All methods raise SourceError for what cannot be read.
    """

    def __init__(self, explainer: Explainer, application: str | None, kind: str | None) -> None:
        self._explainer = explainer
        self._application = application
        self._kind = kind

    def text(self, text: str) -> list[Explanation] | ExplainedFile:
        """Explain a text: a request in one of its forms, or the content of a file, such as lines of an access log."""
        try:
            return self._requests(text)
        except errors.SourceError as error:
            with TemporaryDirectory() as folder:
                file = Path(folder, "input")
                file.write_bytes(text.encode("utf-8", "surrogateescape"))
                try:
                    return self._kinds(file)
                except errors.SourceError:
                    raise error from None

    def file(self, file: Path) -> list[Explanation] | ExplainedFile:
        """Explain a file of requests, or one that holds a curl command or a HAR entry."""
        text = inputs.text_of_file(file) if self._kind is None else None
        # First of all: the commas of a command's queries look like those of a parts list.
        if text is not None and curl.is_curl(text):
            return self._requests(text)
        try:
            return self._kinds(file)
        except errors.SourceError as error:
            try:
                return self._requests(text or "")
            except errors.SourceError:
                raise error from None

    def _requests(self, text: str) -> list[Explanation]:
        return [self._explainer.explain_input(each, self._application) for each in inputs.read_text(text)]

    def _kinds(self, file: Path) -> ExplainedFile:
        skipped: Counter[str] = Counter()
        read = inputs.read_har(file) if self._kind in (None, "har") else None
        if read is not None:
            explained = kinds.explained(file.name, _v3_requests(read, skipped), self._explainer, self._application)
        else:
            clients = Clients()
            source = sources.open_source(file, clients, kind=self._kind)
            requests = ((each, clients.key(each.client, "baseline")) for each in source.requests())
            keyless = source.kind in KEYLESS
            explained = kinds.explained(file.name, requests, self._explainer, self._application, keyless)
            for count in (*source.junk, *source.skipped):
                skipped[count.reason] += count.times
        return msgspec.structs.replace(explained, skipped=dict(skipped))


def _v3_requests(read: list[inputs.InputRequest], skipped: Counter[str]) -> Iterator[tuple[V3Request, str | None]]:
    """Yield the v3 requests of a HAR file: a browser records everything that a page loads."""
    for each in read:
        if each.request is None:
            skipped["is not a v3 request"] += 1
        elif each.method not in endpoints.READ_METHODS:
            skipped["its method is not GET or HEAD"] += 1
        else:
            yield each.request, each.apikey
