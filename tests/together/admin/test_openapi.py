"""The OpenAPI document of the admin interface describes what its routes really are, and what pages really return."""

from typing import Any

import jsonschema
import openapi_spec_validator
import pytest
from support import running_admin

from proxy.web.admin import openapi, pages
from proxy.web.admin.page import AdminPage

DOCUMENT = openapi.document()


def test_document_is_valid_openapi() -> None:
    openapi_spec_validator.validate(DOCUMENT, cls=openapi_spec_validator.OpenAPIV31SpecValidator)


async def test_document_is_served_and_has_every_route_of_scripts(admin: running_admin.AdminClient) -> None:
    assert await admin.json("/openapi.json") == DOCUMENT
    people = set().union(*(page.paths for page in pages.PAGES)) | {
        "/sign-in",
        "/sign-in/oidc",
        "/sign-in/oidc/return",
        "/sign-out",
        "/static/{name}",
        "/openapi.json",
    }
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert {(method, path) for method, path in admin.routes if path not in people} == described


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.name))
async def test_json_of_a_page_is_valid(admin: running_admin.AdminClient, page: AdminPage) -> None:
    response: Any = DOCUMENT["paths"][f"/{page.name}.json"]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    jsonschema.validate(
        await admin.json(f"/{page.name}.json"),
        {**schema, "components": DOCUMENT["components"]},
        jsonschema.Draft202012Validator,
    )


def test_every_struct_is_described() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert [name for name, schema in schemas.items() if "properties" in schema and not schema.get("description")] == [
        "Error"
    ]
