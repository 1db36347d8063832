"""Explanation of a GraphQL document, of today's API or of v4: where each root field comes from, and what it may cost.
Sends nothing."""

import re
from collections.abc import Mapping, Set
from typing import Any

import graphql
import msgspec
import typer
from rich.table import Table

from proxy import config, errors
from proxy.cli import explained, shown
from proxy.graphql import schema
from proxy.graphql.documents import DocumentReader, InvalidDocumentError
from proxy.graphql.preparation import DocumentRequest, RequestPreparation
from proxy.kit.wording import counted
from proxy.v4 import rewrite
from proxy.v4.documents import V4DocumentReader

BEGINNING = re.compile(r"\s*(?:(?:query|mutation|fragment|subscription)\b|\{\s*[\w.#])")  # of a document, as text
RECORDS, OWN = "records that all dialects share", "an operation of its own"
FREE, SHIPPED = "passed on, cached for 5 minutes", "the shipped schema"
PASSED_ON = "passed on with your own access token"


class SentDocument(msgspec.Struct):
    """A document as a client sends it: the body of a POST."""

    query: str
    variables: dict[str, Any] | None = None
    operation_name: str | None = msgspec.field(default=None, name="operationName")


class ExplainedRoot(msgspec.Struct):
    """Root field of a document. `because` is what records lack of it."""

    field: str
    source: str
    parts_max: int
    because: str = ""


class ExplainedDocument(msgspec.Struct):
    """Explanation of a document: its dialect, its root fields, parts at most, or why it is refused."""

    dialect: str
    fields: list[ExplainedRoot] = []
    parts_max: int = 0
    refused: list[str] = []


def read(text: str) -> SentDocument | None:
    """Return the document of an input; None for another kind of input."""
    if BEGINNING.match(text):
        return SentDocument(text)
    try:
        return msgspec.json.decode(text, type=SentDocument)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def explain(sent: SentDocument, upstream: config.UpstreamSettings | str) -> ExplainedDocument:
    """Explain a document as the service would prepare it."""
    site = config.UpstreamSettings().site if isinstance(upstream, str) else upstream.site
    known = schema.load(site)
    reader = DocumentReader(known)
    variables: Mapping[str, Any] = sent.variables or {}
    is_v4 = any(name in _v4_fields(site) for name in _fields_of(sent.query))
    result = ExplainedDocument("v4" if is_v4 else "GraphQL")
    try:
        if is_v4:
            request = V4DocumentReader(reader, site).request(sent.query, sent.operation_name, variables)
        else:
            request = DocumentRequest(reader.read(sent.query), sent.operation_name, variables)
        if request.document.is_passed_on:
            names = sorted(_fields_of(sent.query))
            return msgspec.structs.replace(result, fields=[ExplainedRoot(name, PASSED_ON, 0) for name in names])
        prepared = RequestPreparation(known).prepare(request)
    except InvalidDocumentError as error:
        return msgspec.structs.replace(result, refused=[each.message for each in error.errors])
    for (field, root), arguments in zip(prepared.fields, prepared.arguments, strict=True):
        if root is None:
            result.fields.append(ExplainedRoot(field.name, SHIPPED, 0))
            continue
        lacking, parts = root.lacking(arguments), root.parts_max(arguments)
        source = RECORDS if lacking is None else OWN if parts or lacking else FREE
        name = field.key if field.key == field.name or is_v4 else f"{field.key}: {field.name}"
        result.fields.append(ExplainedRoot(name, source, parts, lacking or ""))
    result.parts_max = sum(each.parts_max for each in result.fields)
    return result


def show(result: ExplainedDocument, as_json: bool) -> None:
    """Print an explanation."""
    if as_json:
        shown.print_json(result)
        return
    console = explained.console()
    if result.refused:
        console.print(f"Refused before anything is sent ({result.dialect}):")
        for message in result.refused:
            console.print(f"  {message}", markup=False, highlight=False)
        raise typer.Exit(1)
    table = Table("root field", "comes from", "parts at most", "because of", box=None, header_style="bold")
    for each in result.fields:
        table.add_row(each.field, each.source, str(each.parts_max), each.because)
    console.print(f"A document of {'v4, sent with the names of today' if result.dialect == 'v4' else 'GraphQL'}")
    console.print(table)
    console.print(f"At most {counted(result.parts_max, 'part')}. Those that are in the cache cost nothing.")


def check(options: Mapping[str, Any]) -> None:
    """Raise SourceError for options that a document cannot be combined with."""
    if wrong := [name for name, value in options.items() if value]:
        raise errors.SourceError(f"a GraphQL document is only explained: leave {wrong[0]} out")


def _v4_fields(site: str) -> Set[str]:
    query = rewrite.schema(site).query_type
    return query.fields.keys() if query is not None else frozenset()


def _fields_of(text: str) -> set[str]:
    """Return the names of the root fields of supply data in a document; none of one that cannot be parsed."""
    try:
        nodes = graphql.parse(text).definitions
    except graphql.GraphQLSyntaxError:
        return set()
    operations = [node for node in nodes if isinstance(node, graphql.OperationDefinitionNode)]
    selections = [each for node in operations for each in node.selection_set.selections]
    return {each.name.value for each in selections if isinstance(each, graphql.FieldNode)}
