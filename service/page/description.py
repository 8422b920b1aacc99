"""Serves the page of the description, which asks for a key where the description needs one."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

PAGE = Path(__file__).resolve().parent / "description.html"

routes = APIRouter()


@routes.get("/docs", include_in_schema=False)
async def description_page() -> Response:
    """The page, which holds nothing of the description itself."""
    return FileResponse(PAGE, headers={"Cache-Control": "no-cache", "X-Frame-Options": "DENY"})
