"""The console's files, as they lie in the package: no build step, nothing from elsewhere."""

from pathlib import Path
from typing import Final

import trio

from kafkalite.http.routing import HttpError, HttpRequest, HttpResponse, Route

FOLDER: Final = Path(__file__).parent.parent / "console" / "static"
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_routes() -> list[Route]:
    """Return what is answered."""
    return [
        Route(method="GET", path="/", handler=_home),
        Route(method="GET", path="/console", handler=_home),
        Route(method="GET", path="/console/{rest*}", handler=_file),
    ]


async def _home(request: HttpRequest) -> HttpResponse:
    del request
    await trio.lowlevel.checkpoint()
    return HttpResponse(status=303, headers={"Location": "/console/"})


async def _file(request: HttpRequest) -> HttpResponse:
    name = request.parameters["rest"] or "index.html"
    await trio.lowlevel.checkpoint()
    path = FOLDER / name
    if "/" in name or path.suffix not in TYPES or not path.is_file():
        raise HttpError(404, f"there is nothing at {request.path[:200]}")
    return HttpResponse(
        body=path.read_bytes(),
        content_type=TYPES[path.suffix],
        headers={"Cache-Control": "no-cache"},
    )
