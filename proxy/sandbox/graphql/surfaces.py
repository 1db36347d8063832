"""The schema as requests meet it: whole, or without the fields that a fault takes away.

Used by the query service. Each has its own documents, because what is valid in one is not in the other.
"""

from dataclasses import dataclass

from graphql import GraphQLSchema

from proxy.sandbox.graphql import documents, schema


@dataclass(frozen=True, slots=True)
class Surface:
    """A schema, and documents as they are read by it."""

    schema: GraphQLSchema
    documents: documents.Documents


class Surfaces:
    """The whole one, and the last that lacked something."""

    def __init__(self, built: GraphQLSchema) -> None:
        self.whole = Surface(built, documents.Documents(built))
        self._lacking: tuple[frozenset[str], Surface] = (frozenset(), self.whole)

    def current(self, missing: frozenset[str]) -> Surface:
        """The whole one, or the one without these fields."""
        return self.without(missing) if missing else self.whole

    def without(self, missing: frozenset[str]) -> Surface:
        """The surface without these fields (Type.field)."""
        if self._lacking[0] != missing:
            built = schema.build(missing)
            self._lacking = (missing, Surface(built, documents.Documents(built)))
        return self._lacking[1]
