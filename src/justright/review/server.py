"""The routes of the review page. Images are asked for by number, never by path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import AfterValidator, Field

from justright.errors import BadImageError, JustrightError
from justright.review import answers
from justright.review.actions import MAX_REVIEWER, REJECTED, Request, Strict, clean_text
from justright.review.changes import ConflictError
from justright.review.export import Form, export
from justright.review.open_review import OpenReview
from justright.review.security import Access, App, Guard
from justright.review.sheets import ClusterOrder, ImageOrder
from justright.review.state import Status
from justright.review.thumbnails import SIZES

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
STATIC = {
    file.name: (file.read_bytes(), KINDS[Path(file.name).suffix])
    for file in files("justright.review").joinpath("static").iterdir()
    if Path(file.name).suffix in KINDS
}
"""Every file of the page; no other name is served."""

MAX_PAGE = 2000
ENDINGS: dict[Form, str] = {"csv": "labels.csv", "parquet": "labels.parquet", "labeled": "labeled.parquet"}

Offset = Annotated[int, Query(ge=0, lt=2**31)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Reviewer = Annotated[str, Query(min_length=1, max_length=MAX_REVIEWER), AfterValidator(clean_text)]
Number = Annotated[int, Field(ge=REJECTED, lt=2**31)]


class ExportRequest(Strict):
    """Which labels to write; where to is not for a page to say."""

    form: Form
    is_all: bool = False
    with_known: bool = False
    is_copy: bool = False


def guarded_app(opened: OpenReview, access: Access, reviewer: str = "") -> App:
    """The page with its guard, ready to be served."""
    return Guard(make_app(opened, reviewer), access)


def make_app(opened: OpenReview, reviewer: str = "") -> FastAPI:
    """The routes, without the guard. Only tests call them so."""
    app = FastAPI(openapi_url=None)
    _answer_errors(app)
    _page_routes(app)
    _reading_routes(app, opened, reviewer)
    _writing_routes(app, opened)
    return app


def _page_routes(app: FastAPI) -> None:
    @app.get("/")
    def page() -> Response:
        return _static("review.html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        return _static(name)


def _reading_routes(app: FastAPI, opened: OpenReview, reviewer_of_run: str) -> None:
    @app.get("/about")
    def about() -> JSONResponse:
        return JSONResponse(answers.about(opened, reviewer_of_run))

    @app.get("/status")
    def status(since: Annotated[int, Query(ge=0, lt=2**53)] = 0) -> JSONResponse:
        return JSONResponse(answers.status(opened, since))

    @app.get("/clusters")
    def clusters(
        order: ClusterOrder = "largest",
        status: Status | Literal["all"] = "all",
        search: Annotated[str, Query(max_length=200)] = "",
        offset: Offset = 0,
        limit: Limit = 100,
    ) -> JSONResponse:
        return JSONResponse(answers.clusters(opened, order, None if status == "all" else status, search, offset, limit))

    @app.get("/clusters/{cluster}")
    def cluster(cluster: Number) -> JSONResponse:
        return JSONResponse(answers.cluster(opened, cluster))

    @app.get("/clusters/{cluster}/images")
    def images(cluster: Number, order: ImageOrder = "central", offset: Offset = 0, limit: Limit = 200) -> JSONResponse:
        return JSONResponse(answers.images(opened, cluster, order, offset, limit))

    @app.get("/clusters/{cluster}/near")
    def near(
        cluster: Number,
        rows: Annotated[str, Query(pattern=r"^(\d{1,9}(,\d{1,9}){0,99})?$")] = "",
        search: Annotated[str, Query(max_length=200)] = "",
        limit: Limit = 50,
    ) -> JSONResponse:
        given = [int(row) for row in rows.split(",") if row]
        return JSONResponse(answers.near(opened, cluster, given, search, limit))

    @app.get("/images/{row}/{size}")
    def image(row: int, size: int) -> Response:
        if not 0 <= row < len(opened.predictions) or size not in SIZES:
            return _missing()
        # the address holds the token, which is of this run: what the browser keeps is never of another
        kept = {"cache-control": "private, max-age=604800, immutable"}
        return Response(opened.thumbnails.get(row, size), media_type="image/jpeg", headers=kept)

    @app.get("/check")
    def check(reviewer: Reviewer) -> JSONResponse:
        return JSONResponse(answers.check(opened, reviewer))

    @app.get("/history")
    def history(limit: Limit = 100) -> JSONResponse:
        return JSONResponse(answers.history(opened, limit))

    @app.get("/agreement")
    def agreed() -> JSONResponse:
        return JSONResponse(answers.agreed(opened))


def _writing_routes(app: FastAPI, opened: OpenReview) -> None:
    @app.post("/act")
    def act(request: Request) -> JSONResponse:
        return JSONResponse(asdict(opened.act(request)))

    @app.post("/export")
    def write(request: ExportRequest) -> JSONResponse:
        folder = opened.folder / "export"
        path = folder / ENDINGS[request.form] if request.form in ENDINGS else _new_folder(folder)
        n_images = export(
            opened,
            path,
            request.form,
            is_all=request.is_all,
            with_known=request.with_known,
            is_copy=request.is_copy,
        )
        return JSONResponse({"path": str(path), "n_images": n_images, "name": ENDINGS.get(request.form)})

    @app.get("/export/{name}")
    def download(name: str) -> Response:
        path = opened.folder / "export" / name
        if name not in ENDINGS.values() or not path.is_file():
            return _missing()
        return FileResponse(path, filename=name, media_type="application/octet-stream")


def _new_folder(parent: Path) -> Path:
    number = 1
    while (path := parent / f"classes-{number}").exists():
        number += 1
    return path


def _static(name: str) -> Response:
    if name not in STATIC:
        return _missing()
    content, kind = STATIC[name]
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


def _missing() -> Response:
    return JSONResponse({"error": "There is nothing of this name."}, 404)


def _answer_errors(app: FastAPI) -> None:
    def answering(status: int) -> Callable[[Any, Exception], Response]:
        return lambda _, error: JSONResponse({"error": str(error)}, status)

    app.add_exception_handler(BadImageError, answering(404))
    app.add_exception_handler(ConflictError, answering(409))
    app.add_exception_handler(JustrightError, answering(422))
    app.add_exception_handler(OSError, lambda _, error: JSONResponse({"error": f"Not saved: {error}"}, 507))
    # what came is not repeated: it may be no text at all
    app.add_exception_handler(RequestValidationError, lambda _, error: JSONResponse({"error": _said(error)}, 422))


def _said(error: Exception) -> str:
    first = error.errors()[0] if isinstance(error, RequestValidationError) and error.errors() else {}
    where = ".".join(str(part) for part in first.get("loc", ()) if isinstance(part, int) or str(part).isidentifier())
    return f"{where}: {first.get('msg', 'cannot be understood')}"
