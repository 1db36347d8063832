"""The schema as text: `GET /graphql?sdl`, as Hot Chocolate has it (https://chillicream.com/docs/hotchocolate/v13/server/
endpoints, "MapGraphQLSchema"). The IDE shows it, code generators read it. It needs no token, as introspection.
"""

import hashlib
from collections.abc import Callable

from aiohttp import web
from graphql import GraphQLSchema, print_schema

MEDIA_TYPE = "application/graphql"


class Definition:
    """The handler. `current` is the schema as requests meet it at this moment."""

    def __init__(self, current: Callable[[], GraphQLSchema]) -> None:
        self._current = current
        self._printed: tuple[GraphQLSchema, str] | None = None

    def text(self) -> str:
        """The whole schema in the schema definition language."""
        schema = self._current()
        if self._printed is None or self._printed[0] is not schema:
            self._printed = schema, print_schema(schema) + "\n"
        return self._printed[1]

    def answer(self, request: web.Request) -> web.Response:
        """200 with the text as a file, 304 for who has it."""
        content = self.text().encode()
        tag = hashlib.sha256(content).hexdigest()[:32]
        headers = {"Cache-Control": "no-cache", "Content-Disposition": 'attachment; filename="schema.graphql"'}
        if any(known.value in (tag, "*") for known in request.if_none_match or ()):
            response = web.Response(status=304, headers=headers)
        else:
            response = web.Response(body=content, content_type=MEDIA_TYPE, charset="utf-8", headers=headers)
        response.etag = tag
        return response
