"""OpenAPI 3.1 document of the admin interface, made of its pages and actions: nothing else is listed."""

from typing import Any

import msgspec

from proxy import __version__
from proxy.web.admin import pages
from proxy.web.admin.page import ActionResult, AdminAction, AdminDocument, AdminPage, PageParameter

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
MESSAGE: Schema = {"type": "object", "properties": {"message": TEXT}, "required": ["message"]}
DESCRIPTION = (
    "Pages of the admin interface as JSON, and actions. Times are in seconds since 1970, durations in seconds."
)
FORM_FAILURES = ("400", "401", "403", "429")
SECURITY: Schema = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The admin token."},
    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-v3bridge", "description": "A signed-in browser."},
}


def document() -> Schema:
    structs = [*(page.struct for page in pages.PAGES), ActionResult]
    references, components = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    components = msgspec.json.decode(msgspec.json.encode(components))  # as JSON: defaults may be tuples
    schemas = dict(zip(structs, references, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {"title": "v3bridge admin interface", "version": __version__, "description": DESCRIPTION},
        "security": [{name: []} for name in SECURITY],
        "paths": {
            **{f"/{page.name}.json": _page(page, schemas[page.struct]) for page in pages.PAGES},
            **{f"/{page.name}.csv": {"get": _file(page)} for page in pages.PAGES if page.csv is not None},
            **{action.path: {"post": _action(action, schemas[ActionResult])} for action in pages.ACTIONS},
            **{document.path: {"get": _document(document)} for document in pages.DOCUMENTS},
            "/healthz": {"get": _check("Liveness: the process runs.", "application/json")},
            "/readyz": {
                "get": _check("Readiness: 503 with every reason while requests fail.", "application/json", 503)
            },
            "/metrics": {"get": _check("Metrics in the text format of Prometheus.", "text/plain")},
        },
        "components": {
            "schemas": {**components, "Error": MESSAGE},
            "responses": {
                "error": {
                    "description": "The reason.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
            "securitySchemes": SECURITY,
        },
    }


def _page(page: AdminPage, schema: Schema) -> Schema:
    operation = {
        "operationId": page.name,
        "summary": page.summary,
        "responses": _responses(schema, "400", "401", "429"),
    }
    methods = {"get": operation | _query(page)}
    if page.posts:
        form = {**operation, "operationId": f"{page.name}-form", "responses": _responses(schema, *FORM_FAILURES)}
        methods["post"] = form | _form(page.parameters)
    return methods


def _document(document: AdminDocument) -> Schema:
    return {
        "operationId": document.path.strip("/").replace("/", "-").removesuffix(".html"),
        "summary": document.summary,
        "responses": _responses(TEXT, "401", "404", "429", content_type="text/html"),
    }


def _file(page: AdminPage) -> Schema:
    operation = {
        "operationId": f"{page.name}-csv",
        "summary": f"{page.summary} As a file for spreadsheets.",
        "responses": _responses(TEXT, "400", "401", "429", content_type="text/csv"),
    }
    return operation | _query(page)


def _query(page: AdminPage) -> Schema:
    if not page.parameters:
        return {}
    place = {"in": "query", "schema": TEXT}
    return {"parameters": [{**place, **parameter._asdict()} for parameter in page.parameters]}


def _action(action: AdminAction, schema: Schema) -> Schema:
    operation = {
        "operationId": action.path.strip("/").replace("/", "-"),
        "summary": action.summary,
        "responses": _responses(schema, *FORM_FAILURES),
    }
    return operation | _form(action.parameters)


def _form(parameters: tuple[PageParameter, ...]) -> Schema:
    """Return the fields of a form as the body of a request; nothing without fields."""
    if not parameters:
        return {}
    form: Schema = {"type": "object", "properties": {parameter.name: _property(parameter) for parameter in parameters}}
    if required := [parameter.name for parameter in parameters if parameter.required]:
        form["required"] = required
    return {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": form}}}}


def _check(summary: str, content_type: str, failure: int | None = None) -> Schema:
    """Return a path that needs no token."""
    statuses = {"200": {"description": "OK", "content": {content_type: {}}}}
    if failure is not None:
        statuses[str(failure)] = {"description": "The reasons.", "content": {content_type: {}}}
    return {"summary": summary, "security": [], "responses": statuses}


def _responses(schema: Schema, *failures: str, content_type: str = "application/json") -> Schema:
    errors = {status: {"$ref": "#/components/responses/error"} for status in failures}
    return {"200": {"description": "OK", "content": {content_type: {"schema": schema}}}, **errors}


def _property(parameter: PageParameter) -> Schema:
    return {**TEXT, "description": parameter.description}
