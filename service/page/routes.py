"""Serves the page: files under a policy that lets nothing else in."""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).resolve().parent / "static"
FILES = "/page"
HEADERS = {
    # Scripts, styles and answers of this server alone; no markup made from text (Trusted Types); no frames.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked each time whether it is still the same
}

routes = APIRouter()


@routes.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """The page, which holds no data: what it shows it asks for, with a key where the server has keys.

    Its links are relative, so a path prefix gets its slash first.
    """
    prefix: bytes = request.scope["raw_path"]
    if not prefix.endswith(b"/"):
        return RedirectResponse(f"{prefix.decode('ascii').rpartition('/')[2]}/")
    return FileResponse(STATIC / "index.html", headers=HEADERS)


class PageFiles(StaticFiles):
    """The files that the page loads."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """A file, or 304 where the browser has it. Read at once: a visit asks for many, all small."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if isinstance(response, FileResponse):
            response = Response(Path(full_path).read_bytes(), status_code, response.headers)
            del response.headers["accept-ranges"]
        response.headers.update(HEADERS)
        return response
