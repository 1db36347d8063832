"""Documents of v4 clients: validated by the v4 schema, so that errors have its names, then rewritten."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import graphql
from graphql.execution import values

from proxy.graphql import documents
from proxy.graphql.documents import ClientDocument, DocumentRequest, InvalidDocumentError
from proxy.v4 import rewrite


class V4DocumentReader(documents.DocumentReader):
    """Makes requests of v4 documents of a catalog `site`. Rewritten, a valid one is valid by `schema`."""

    def __init__(self, schema: graphql.GraphQLSchema, site: str) -> None:
        super().__init__(schema)
        self._v4 = rewrite.schema(site)

    def request(self, text: str, operation_name: str | None, variables: Mapping[str, Any]) -> DocumentRequest:
        """Read a document. Raises InvalidDocumentError, also for a variable with a wrong value."""
        documents.check_variables(variables)
        document = self.read(text)
        chosen = document.operation(operation_name)
        operation = document.sent[chosen.name.value if chosen.name else None]
        coerced = values.get_variable_values(
            self._v4, operation.variable_definitions or (), dict(variables), max_errors=documents.ERRORS_MAX
        )
        if isinstance(coerced, list):
            raise InvalidDocumentError(*coerced)
        return DocumentRequest(document, operation_name, rewrite.rewrite_variables(operation, variables, self._v4))

    def _read(self, text: str) -> ClientDocument:
        node = documents.parse(text)
        sent = documents.measured(node)
        if problems := graphql.validate(self._v4, node, max_errors=documents.ERRORS_MAX):
            raise InvalidDocumentError(*problems)
        rewritten = documents.measured(rewrite.rewrite(node, self._v4), rewrite.client_names())
        return replace(rewritten, sent=sent.operations, introspected=self._v4)
