"""What requests may cost at most, also documents, and at both sides of a comparison."""

import msgspec

from proxy.graphql import schema
from proxy.graphql.documents import DocumentReader, InvalidDocumentError
from proxy.graphql.preparation import DocumentRequest, RequestPreparation
from proxy.model import GRAPHQL_PATHS, WRAPPER
from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request
from proxy.v4.documents import V4DocumentReader
from proxy.v4.wrapper import MATCH

SITE = "octopart"  # of the catalog, where no configuration names another


class _Variables(msgspec.Struct):
    variables: dict[str, object] | None = None


class WorstCaseCosts:
    """Worst-case costs in parts. `baseline_billed`: a document costs as much at the baseline."""

    def __init__(self, site: str | None = None, *, baseline_billed: bool = False) -> None:
        self._site = site or SITE
        self._baseline_billed = baseline_billed
        self._reader = DocumentReader(schema.load(self._site))
        self._preparation = RequestPreparation(schema.load(self._site))
        self._v4 = V4DocumentReader(self._reader, self._site)

    def candidate(self, request: V3Request) -> int:
        """Return the maximum cost of one response of the candidate."""
        if request.path == WRAPPER:
            return estimate.worst_case_parts(msgspec.structs.replace(request, path=MATCH.path))
        return self._document(request) if request.is_document else estimate.worst_case_parts(request)

    def baseline(self, request: V3Request) -> int:
        """Return the maximum cost of one response of the baseline."""
        return self._document(request) if self._baseline_billed and request.is_document else 0

    def both(self, request: V3Request) -> int:
        """Return the maximum cost of a response of each side."""
        return self.candidate(request) + self.baseline(request)

    def _document(self, request: V3Request) -> int:
        """Return the sum over the root fields; 0 for a document that is refused."""
        sent = dict(request.query)
        text, name = sent.get("query", ""), sent.get("operationName")
        try:
            variables = msgspec.json.decode(request.document(), type=_Variables).variables or {}
            if request.path == GRAPHQL_PATHS[0]:
                document = DocumentRequest(self._reader.read(text), name, variables)
            else:
                document = self._v4.request(text, name, variables)
            if document.document.is_passed_on:
                return 0
            prepared = self._preparation.prepare(document)
        except (InvalidDocumentError, msgspec.MsgspecError):
            return 0
        return sum(
            root.parts_max(each) for (_, root), each in zip(prepared.fields, prepared.arguments, strict=True) if root
        )
