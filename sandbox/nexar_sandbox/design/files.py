"""The file service: uploads, and the files of packages and exports.

The only design service that clients call directly: a multipart upload with a user's token returns the file's id as
text. A download needs no token, so that a link can be followed.
"""

from urllib.parse import quote

from aiohttp import web

from nexar_sandbox.design import design_store
from nexar_sandbox.identity import forms, tokens

PATH = "/File/Upload"
DOWNLOAD_PATH = "/File/Download"
FIELD = "file"
SCOPE = "design.domain"


class FileService:
    def __init__(self, store: design_store.DesignStore, token_issuer: tokens.TokenIssuer) -> None:
        self._store, self._tokens = store, token_issuer

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post(PATH, self.upload)
        router.add_get(DOWNLOAD_PATH, self.download)

    async def upload(self, request: web.Request) -> web.Response:
        """Store the file in the form field `file` and return its id; 401 without a user's token, 400 without a file."""
        if not self._has_user_token(request):
            return web.Response(text="a file is uploaded with a user's token", status=401)
        if request.content_type != "multipart/form-data":
            return web.Response(text=f"the body must be multipart/form-data, not {request.content_type}", status=400)
        upload_field = (await request.post()).get(FIELD)
        if not isinstance(upload_field, web.FileField):
            return web.Response(text=f"the form has no file in its field {FIELD!r}", status=400)
        return web.Response(text=self._store.add_file(upload_field.filename, upload_field.file.read()))

    async def download(self, request: web.Request) -> web.Response:
        stored_file = self._store.files.get(request.query.get("id", ""))
        if stored_file is None:
            return web.Response(text="there is no such file", status=404)
        name, content = stored_file
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        return web.Response(body=content, content_type="application/octet-stream", headers=headers)

    def _has_user_token(self, request: web.Request) -> bool:
        try:
            claims = self._tokens.access(forms.access_token(request.headers) or "")
        except (tokens.InvalidTokenError, tokens.ExpiredTokenError):
            return False
        return claims.user is not None and SCOPE in claims.scopes
