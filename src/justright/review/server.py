"""The addresses of the review page. Images are asked for by number, never by path."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response

from justright.review.actions import Request, Strict, first_problem
from justright.review.changes import ConflictError
from justright.review.export import Form, export
from justright.review.open_review import OpenReview
from justright.review.page_data import PageData
from justright.review.thumbnails import SIZES
from justright.utils.errors import BadImageError, JustrightError

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC = {  # every file of the page; no other name is served
    file.name: (file.read_bytes(), KINDS[Path(file.name).suffix])
    for file in files("justright.review").joinpath("static").iterdir()
    if Path(file.name).suffix in KINDS
}
ENDINGS: dict[Form, str] = {"csv": "labels.csv", "parquet": "labels.parquet", "labeled": "labeled.parquet"}


class ExportRequest(Strict):
    """Which labels to write. The page cannot choose where."""

    form: Form
    is_all: bool = False
    with_known: bool = False
    is_copy: bool = False


def make_app(opened: OpenReview, reviewer: str = "") -> FastAPI:
    """All addresses, without `security.Guard`. Only tests call them so."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)  # a redirect would lose the token
    _answer_errors(app)
    for address, answer in PageData(opened, reviewer).routes().items():
        app.get(address, response_model=None)(answer)

    @app.post("/act")
    def act(request: Request) -> JSONResponse:
        done = opened.act(request)
        return JSONResponse({"seq": done.line.seq, "changed": sorted(done.clusters), "made": done.made})

    @app.post("/export")
    def write(request: ExportRequest) -> JSONResponse:
        folder = opened.folder / "export"
        new = next(name for n in count(1) if not (folder / (name := f"classes-{n}")).exists())
        path = folder / ENDINGS.get(request.form, new)
        n_images = export(opened, path, **request.model_dump())
        return JSONResponse({"path": str(path), "n_images": n_images, "name": ENDINGS.get(request.form)})

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            return _missing()
        content, kind = STATIC[name]
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    app.get("/", response_model=None)(lambda: static("review.html"))

    @app.get("/images/{row}/{size}")
    def image(row: int, size: int) -> Response:
        if not 0 <= row < len(opened.predictions) or size not in SIZES:
            return _missing()
        # the address holds the token, which is of this run: what the browser keeps is never of another
        kept = {"cache-control": "private, max-age=604800, immutable"}
        return Response(opened.thumbnails.get(row, size), media_type="image/jpeg", headers=kept)

    @app.get("/export/{name}")
    def download(name: str) -> Response:
        path = opened.folder / "export" / name
        if name not in ENDINGS.values() or not path.is_file():
            return _missing()
        return FileResponse(path, filename=name, media_type="application/octet-stream")

    return app


def _missing() -> Response:
    return JSONResponse({"error": "There is nothing of this name."}, 404)


def _answer_errors(app: FastAPI) -> None:
    def answer(kind: type[Exception], status: int, said: Callable[[Any], str] = str) -> None:
        app.add_exception_handler(kind, lambda _, error: JSONResponse({"error": said(error)}, status))

    answer(BadImageError, 404)
    answer(ConflictError, 409)
    answer(JustrightError, 422)
    answer(OSError, 507, lambda error: f"Not saved: {error}")
    answer(RequestValidationError, 422, lambda error: first_problem(error.errors()))
