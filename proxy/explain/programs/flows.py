"""Flow of a program: which `main` of snippets/requests it has, and the constants that it reads.

It follows planning/match.py, search.py and parts.py; what a program leaves out is in `omitted`, which is printed as a
comment.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

import graphql

from proxy import errors
from proxy.explain.explanation import ExplainedOperation, Explanation
from proxy.explain.programs.printer import Setting
from proxy.mapping.compiler import CompiledObject
from proxy.mapping.loader import Mappings
from proxy.model import PartsMatchQuery, PartsMatchRequest
from proxy.planning import documents, exact_match
from proxy.planning.projection_cache import LISTS
from proxy.v3.parsing import requests
from proxy.v3.parsing import search as search_parser
from proxy.v3.parsing.request_parameters import RequestParameters

PLACEHOLDER = re.compile(r"<id of (.*)>", re.DOTALL)  # of a name in a list that the explanation does not have


class NoProgramError(errors.StartError):
    """There is no program for a request; the message gives the reason."""


@dataclass(slots=True)
class Flow:
    """`main` is the name of the function, `constants` are values of JSON by name; documents are texts. `choices` name
    the definition to use for a name, where there are several."""

    main: str
    constants: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


class GraphQLRequest(NamedTuple):
    """Document and variables of a request."""

    document: str
    variables: dict[str, Any]


Compile = Callable[[tuple[str, ...]], CompiledObject]
"""Compiles the objects of a response; the paths are selected, too."""


def program_flow(
    explanation: Explanation, parameters: RequestParameters, mappings: Mappings, compiled_with: Compile
) -> tuple[Flow, CompiledObject]:
    """Return the flow of a program for an explained request, and the mapping of its objects. Raises
    NoProgramError."""
    if explanation.object != "Part":
        return _list(explanation, parameters, mappings, compiled_with)
    compiled = compiled_with(())
    operations = [each for each in explanation.operations if each.condition is None]
    if not operations and explanation.lists:
        raise NoProgramError(f"Nexar's list of {' and '.join(explanation.lists)} objects is needed to understand it")
    if not operations:
        raise NoProgramError("v3bridge serves this request without requesting parts: nothing can match it")
    match explanation.action:
        case "match":
            return _match(parameters, operations, explanation.operations[len(operations) :]), compiled
        case "search":
            flow = _search(parameters, operations)
            if explanation.lists:
                flow.omitted.append(
                    "the search for ids of names in filters: Nexar gets the names, and may find parts of similar ones"
                )
            return flow, compiled
    (operation,) = operations
    constants = {**_operation(operation), "IDS": operation.variables["ids"]}
    return Flow("parts" if explanation.action == "get_multi" else "part", constants), compiled


def graphql_requests(explanation: Explanation, flow: Flow) -> list[GraphQLRequest]:
    """Return the GraphQL requests of a flow, without those that depend on the response of another one."""
    if explanation.object != "Part":
        return [GraphQLRequest(flow.constants["QUERY"], {})]
    sent = [operation for operation in explanation.operations if operation.condition is None]
    return [GraphQLRequest(_document(operation), _with_names(operation.variables)) for operation in sent]


def _operation(operation: ExplainedOperation, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}QUERY": _document(operation), f"{prefix}VARIABLES": _variables(operation.variables)}


def _document(operation: ExplainedOperation) -> str:
    """Return a document without the optional variables that this operation does not set.

    The proxy declares them in all documents, so that it needs no more of them than there are projections.
    """
    variables = operation.variables

    class Trimmer(graphql.Visitor):
        def enter_variable_definition(self, node: graphql.VariableDefinitionNode, *_: Any) -> Any:
            return None if node.variable.name.value in variables else self.REMOVE

        def enter_argument(self, node: graphql.ArgumentNode, *_: Any) -> Any:
            is_unset = isinstance(node.value, graphql.VariableNode) and node.value.name.value not in variables
            return self.REMOVE if is_unset else None

    return graphql.print_ast(graphql.visit(graphql.parse(operation.document, no_location=True), Trimmer()))


def _variables(variables: dict[str, Any]) -> dict[str, Any]:
    """Return variables with the country and the currency as settings of the program."""
    return {
        name: Setting(name) if name in ("country", "currency") else _with_names(value)
        for name, value in variables.items()
    }


def _with_names(value: Any) -> Any:
    """Replace the ids that only a list of the upstream has by names, which its filters accept, too."""
    match value:
        case dict():
            return {key: _with_names(each) for key, each in value.items()}
        case list():
            return [_with_names(each) for each in value]
        case str() if value.startswith("<ids of "):
            raise NoProgramError(
                f"the ids of all names like {value[8:-1]!r} are needed, which have to be looked up first"
            )
        case str() if name := PLACEHOLDER.fullmatch(value):
            return name[1]
    return value


def _match(
    parameters: RequestParameters, operations: list[ExplainedOperation], counts: tuple[ExplainedOperation, ...]
) -> Flow:
    request = requests.parse_match(parameters).request
    first, query = operations[0], request.queries[0]
    reference = {"REFERENCE": query.reference}  # of the only query
    tests = [_test(each, request.exact_only) for each in request.queries]
    is_single = len(operations) == 1 and not any(each.error for each in request.queries)
    if is_single and first.name == "supMultiMatch" and not any(tests):
        references = [each.reference for each in request.queries]
        return Flow("match_batch", {**_operation(first), "REFERENCES": references})
    if is_single and first.name == "supSearch":
        return Flow("match_text", {**_operation(first), **reference})
    if is_single and first.name == "supSearchMpn" and not tests[0]:
        number = exact_match.normalize(query.mpn or "")
        return Flow(
            "match_number",
            {
                **_operation(first),
                **{k: v for each in counts[:1] for k, v in _operation(each, "COUNT_").items()},
                "PLAIN_NUMBER": number,
                "START": query.start,
                **reference,
            },
        )
    return _several_operations(request, operations, tests)


def _several_operations(
    request: PartsMatchRequest, operations: list[ExplainedOperation], tests: list[dict[str, Any]]
) -> Flow:
    queries = [_query(query, test, request.exact_only) for query, test in zip(request.queries, tests, strict=True)]
    is_match = "exactly" if request.exact_only else "pattern" if any(tests) else "any"
    documents_sent = [_document(each) for each in operations]
    texts = list(dict.fromkeys(documents_sent))
    named = {f"QUERY_{number}": text for number, text in enumerate(texts, 1)}
    sent = [
        {
            "query": Setting(f"query_{texts.index(document) + 1}"),
            "variables": _variables(each.variables),
            "positions": list(each.queries),
        }
        for each, document in zip(operations, documents_sent, strict=True)
    ]
    positions = [list(each.queries) for each in operations]
    constants = {**named, "QUERIES": queries, "OPERATIONS": sent, "POSITIONS": positions}
    return Flow("match", constants, {"is_match": f"is_match_{is_match}"})


def _query(query: PartsMatchQuery, test: dict[str, Any], exact_only: bool) -> dict[str, Any]:
    known = {"reference": query.reference, "error": query.error}
    if query.error is not None:
        return known
    number = query.mpn or query.mpn_or_sku or ""
    unranked = bool(number or query.sku) and not exact_match.is_ranked(number, exact_only)
    return {**known, "start": query.start, "limit": query.limit, "is_filtered_here": unranked, **test}


def _test(query: PartsMatchQuery, exact_only: bool) -> dict[str, Any]:
    """Return what a part is compared with: a pattern, or numbers that must be equal to the letter."""
    number = query.mpn or query.mpn_or_sku or ""
    if exact_match.WILDCARD in number:
        pieces = number.split(exact_match.WILDCARD)
        escaped = [re.sub(r"([\\^$.*+?()\[\]{}|])", r"\\\1", each) for each in pieces]
        return {"pattern": ".*".join(escaped if exact_only else map(exact_match.normalize, pieces))}
    named = {"mpn": query.mpn, "sku": query.sku, "mpn_or_sku": query.mpn_or_sku}
    return {key: value for key, value in named.items() if value} if exact_only else {}


def _search(parameters: RequestParameters, operations: list[ExplainedOperation]) -> Flow:
    request = search_parser.parse(parameters)
    first = operations[0]
    flow = Flow("search", _operation(first))
    if first.name == "supMultiMatch":
        numbers = [query["mpn"] for query in first.variables["queries"]]
        flow = Flow(
            "search_numbers",
            {**_operation(first), "MPNS": numbers, "START": request.start, "LIMIT": request.limit},
        )
        if not request.sortby.startswith("score"):
            flow.omitted.append(f"sortby={quote(request.sortby)}: sort the parts before the page is cut out")
    if request.facets or request.stats or request.facet_queries or request.drilldown:
        flow.omitted.append("facets, statistics and spec_metadata: they are in the aggregations (…Agg) of the response")
    return flow


def _list(
    explanation: Explanation, parameters: RequestParameters, mappings: Mappings, compiled_with: Compile
) -> tuple[Flow, CompiledObject]:
    needs = ("id", "name") if explanation.object == "Category" else ("id", "name", "aliases")
    is_search = explanation.action == "search"
    compiled = compiled_with(needs if is_search else needs[:2])
    name = LISTS[explanation.object]
    document = graphql.print_ast(graphql.parse(documents.listing(name, compiled).text, no_location=True))
    constants = {"QUERY": document, "LIST": name}
    if is_search:
        return _list_search(explanation.object, parameters, constants), compiled
    uids = (
        requests.parse_uids(parameters)
        if explanation.action == "get_multi"
        else [explanation.request.partition("?")[0].rpartition("/")[2]]
    )
    keys = ((uid, mappings.tables.uids[explanation.object].key(uid)) for uid in uids)
    wanted = {uid: key for uid, key in keys if key}
    if not wanted:
        raise NoProgramError("no uid of this request is known, so that there is nothing to ask for")
    return Flow(
        "list" if explanation.action == "get_multi" else "list_object", {**constants, "WANTED": wanted}
    ), compiled


def _list_search(name: str, parameters: RequestParameters, constants: dict[str, Any]) -> Flow:
    request = search_parser.parse(parameters)
    text = " ".join(request.q.casefold().split())
    if exact_match.WILDCARD in text.strip("* "):
        raise NoProgramError("q has a * inside, which programs do not search lists by")
    text = text.strip("* ")
    constants |= {"SEARCHED": text, "WORDS": re.findall(r"\w+", text), "START": request.start, "LIMIT": request.limit}
    flow = Flow("list_search", constants, {"names_of": f"names_of_{'seller' if name == 'Seller' else 'object'}"})
    if request.filters or request.filter_queries or not request.sortby.startswith("score"):
        flow.omitted.append("filters and sortby: compare the fields of the records, which are all here")
    if request.facets or request.stats or request.facet_queries:
        flow.omitted.append("facets and statistics: count the fields of the records, which are all here")
    return flow
