"""Pages of the admin interface, a module each.

How to add a page:

1. `pages/NAME.py` has the data as a frozen struct with a docstring, derived from `page.PageData` (structs within it are
   plain frozen `msgspec.Struct`s), an async function that makes it, and the page as a value:

       class CachePage(PageData, frozen=True):
           "Response cache: entries, hits, and what they saved."

           entries: int

       async def _data(context: AdminContext, query: Query) -> CachePage:
           return CachePage(entries=...)

       PAGE = AdminPage("cache", "Cache", "Response cache of all workers.", CachePage, _data)

   Read `context.service.gateway` in the function, never keep it: a reload replaces it. Dependencies that the context
   lacks become fields of `page.AdminContext`. Import heavy packages within the function. Parameters of the URL are
   in `query`; describe them in `AdminPage.parameters`, and raise `errors.BadRequest` for wrong ones.

2. `templates/NAME.html` extends `layout.html` and fills the block `main` with what is in `data`, the struct.
   `{% call live("totals", "tbody") %}…{% endcall %}` makes a piece, an element with this id, whose content is renewed
   while the page is open: in place, and only if it has changed. Long tables have a piece for each row, named for what
   the row shows. Text is escaped, and characters that do not print are made visible.

   Filters: `time` (seconds since 1970, to a <time>), `number(digits)`, `percent` (a share), `duration` (seconds),
   `bytes`. Classes: `figures` (a <dl> of large numbers), `rows` (a <dl> of names and values), `scroll` around each
   table, `n` for cells with numbers, `wide` for long text, `ok`, `warn`, `bad` and `quiet`, `cards` and `card`,
   `actions` around forms. No style and no script (CSP); charts are inline SVG with classes `line`, `area`, `axis`,
   `limit` and `forecast`, and a text alternative.

3. `PAGES` below lists `NAME.PAGE`. The page then is in the navigation, at `/NAME`, as JSON at `/NAME.json`, in the
   OpenAPI document, and visited by the tests of all pages. Renew the document's file:
   `python -m docs.admin_openapi > docs/reference/admin.openapi.json`.

A change is an `AdminAction` in `ACTIONS` below, never a GET. Its form is in the template of its page:

       <form method="post" action="/cache/clear">{{ csrf_field() }}<button>Clear the cache</button></form>

The message that it returns is shown once at the top of its page; scripts get it as JSON. `shown` is for text that must
not be in a cookie. `{% if role == "operator" %}` keeps forms from readers, who could not send them. The audit log has
each action with the fields that its `parameters` name.

A page whose parameters may hold secrets has `posts=True`, and a form with method="post" and its own path. An HTML
document that is no page, with a Content-Security-Policy of its own, is an `AdminDocument` in `DOCUMENTS` below.
"""

from proxy.web.admin.page import AdminAction, AdminDocument, AdminPage
from proxy.web.admin.pages import (
    alerts,
    audit,
    cache,
    clients,
    comparison,
    configuration,
    explain,
    keys,
    overview,
    quota,
    requests,
    schema,
    upstream,
    usage,
)

# In the order of the navigation.
PAGES: tuple[AdminPage, ...] = (
    overview.PAGE,
    clients.PAGE,
    keys.PAGE,
    quota.PAGE,
    usage.PAGE,
    cache.PAGE,
    upstream.PAGE,
    requests.PAGE,
    explain.PAGE,
    comparison.PAGE,
    schema.PAGE,
    alerts.PAGE,
    configuration.PAGE,
    audit.PAGE,
)

ACTIONS: tuple[AdminAction, ...] = (
    *keys.ACTIONS,
    *quota.ACTIONS,
    *cache.ACTIONS,
    *comparison.ACTIONS,
    *configuration.ACTIONS,
    alerts.TEST,
    schema.CHECK,
)

DOCUMENTS: tuple[AdminDocument, ...] = (comparison.REPORT,)
