"""Documents of v4 clients: validated by the v4 schema, then rewritten, once by their text.

Errors of a document, and of its variables, have v4's names and places; it is executed as any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import graphql
from graphql.execution import values

from proxy.graphql import documents
from proxy.graphql.documents import ClientDocument, DocumentRequest, InvalidDocumentError, KeptOfDocuments
from proxy.v4 import rewrite


class V4DocumentReader:
    """Makes requests of v4 documents; `reader` validates what is executed, of a catalog `site`."""

    def __init__(self, reader: documents.DocumentReader, site: str) -> None:
        self._reader = reader
        self._schema = rewrite.schema(site)
        self._known: KeptOfDocuments[ClientDocument] = KeptOfDocuments()

    def request(self, text: str, operation_name: str | None, variables: Mapping[str, Any]) -> DocumentRequest:
        """Read a document. Raises InvalidDocumentError, also for a variable with a wrong value."""
        document = self._known.get(text)
        if document is None:
            document = self._read(text)
            self._known.keep(text, document, len(text))
        chosen = document.operation(operation_name)
        operation = document.sent[chosen.name.value if chosen.name else None]
        coerced = values.get_variable_values(
            self._schema, operation.variable_definitions or (), dict(variables), max_errors=documents.ERRORS_MAX
        )
        if isinstance(coerced, list):
            raise InvalidDocumentError(*coerced)
        renamed = rewrite.rewrite_variables(operation, variables, self._schema)
        return DocumentRequest(document, operation_name, renamed)

    def _read(self, text: str) -> ClientDocument:
        node = documents.parse(text)
        sent = documents.measured(node)
        if problems := graphql.validate(self._schema, node, max_errors=documents.ERRORS_MAX):
            raise InvalidDocumentError(*problems)
        rewritten = self._reader.validated(rewrite.rewrite(node, self._schema), rewrite.client_names())
        return replace(rewritten, sent=sent.operations, introspected=self._schema, length=sent.length)
