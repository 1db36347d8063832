"""Documents that are the caller's own: design data, the organization and mutations. They are sent as they are, with the
caller's own access token, unmetered, and nothing of them is kept."""

import aiohttp

from proxy import config
from proxy.upstream import classify, http_post


async def pass_on(
    session: aiohttp.ClientSession, upstream: config.UpstreamSettings, body: bytes, authorization: str
) -> http_post.HttpResponse:
    """Send a request to the GraphQL service. Raises the errors of http_post."""
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": authorization}
    request = http_post.HttpRequest(
        upstream.graphql_url, classify.SERVICE, body, headers, billed=False, max_bytes=upstream.response_bytes
    )
    return await http_post.post(session, request)
