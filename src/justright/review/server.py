"""The web server of the review page. Images are requested by number, never by path."""

from __future__ import annotations

import errno
import re
import secrets
import socket
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response

from justright.review.actions import Request, Strict, first_problem
from justright.review.export import Form, export
from justright.review.open_review import OpenReview
from justright.review.page_data import PageData
from justright.review.security import LIMITS, Access, ConnectionLimits, Guard, GuardedConnection
from justright.review.state import ConflictError
from justright.review.thumbnails import SIZES
from justright.utils.errors import BadImageError, JustrightError
from justright.utils.files import replacing

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC = {  # all files of the page; no other file is served
    file.name: (file.read_bytes(), KINDS[Path(file.name).suffix])
    for file in files("justright.review").joinpath("static").iterdir()
    if Path(file.name).suffix in KINDS
}
ENDINGS: dict[Form, str] = {"csv": "labels.csv", "parquet": "labels.parquet", "labeled": "labeled.parquet"}
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
WAITING = 128  # connections that the operating system queues for the server
# Connections accepted before the server reads again: few compared with the unauthorized ones it keeps, so that a new
# connection is read before it is pushed out by others.
AT_ONCE = 16


class ExportRequest(Strict):
    """Which labels to export. The page cannot choose the path."""

    form: Form
    is_all: bool = False
    with_known: bool = False
    is_copy: bool = False


def make_app(opened: OpenReview, reviewer: str = "") -> FastAPI:
    """Build the app without `security.Guard`, which `serve` adds."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)  # a redirect would lose the token
    _answer_errors(app)
    for path, handler in PageData(opened, reviewer).routes().items():
        app.get(path, response_model=None)(handler)

    @app.post("/act")
    def act(request: Request) -> JSONResponse:
        entry = opened.act(request)
        return JSONResponse({"seq": entry.line.seq, "changed": sorted(entry.clusters), "made": entry.made})

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
        # the URL contains the token of this run, so a cached image never belongs to another run
        cached = {"cache-control": "private, max-age=604800, immutable"}
        return Response(opened.thumbnails.get(row, size), media_type="image/jpeg", headers=cached)

    @app.get("/export/{name}")
    def download(name: str) -> Response:
        path = opened.folder / "export" / name
        if name not in ENDINGS.values() or not path.is_file():
            return _missing()
        return FileResponse(path, filename=name, media_type="application/octet-stream")

    return app


def _missing() -> Response:
    return JSONResponse({"error": "Not found."}, 404)


def _answer_errors(app: FastAPI) -> None:
    def answer(kind: type[Exception], status: int, message: Callable[[Any], str] = str) -> None:
        app.add_exception_handler(kind, lambda _, error: JSONResponse({"error": message(error)}, status))

    answer(BadImageError, 404)
    answer(ConflictError, 409)
    answer(JustrightError, 422)
    answer(OSError, 507, lambda error: f"Not saved: {error}")
    answer(RequestValidationError, 422, lambda error: first_problem(error.errors()))


def serve(
    opened: OpenReview,
    host: str,
    port: int,
    reviewer: str,
    ready: Callable[[Access], None],
    limits: ConnectionLimits = LIMITS,
) -> None:
    """Serve the page until a signal arrives; calls `ready` once it listens. Port 0 takes a free one."""
    try:
        token = saved_token(opened.folder / "token")
    except OSError as error:
        raise JustrightError(
            f"cannot write to {opened.folder}: {error.strerror or error}",
            advice="a review is saved in the run: copy the run to a writable folder",
        ) from error
    with listen(host, port) as listening:
        access = Access(host, listening.getsockname()[1], token)
        config = uvicorn.Config(
            Guard(make_app(opened, reviewer), access),
            http=partial(GuardedConnection, access, limits, {}),  # type: ignore[arg-type]  # called, not subclassed
            ws="none",
            loop="asyncio",
            log_level="warning",
            access_log=False,  # it would contain the token
            server_header=False,
            limit_concurrency=limits.n_connections,
            backlog=AT_ONCE,
            timeout_keep_alive=limits.seconds_idle,
            h11_max_incomplete_event_size=16 * 1024,
            timeout_graceful_shutdown=2,
            lifespan="off",
        )
        _Server(config, lambda: ready(access)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Calls `on_ready` when it answers requests and a signal can stop it."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]):
        super().__init__(config)
        self.on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(WAITING)  # asyncio uses one number for the queue and for connections accepted at once
        self.on_ready()


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket, with a helpful error if that fails."""
    if not host.strip():
        raise JustrightError("the host is empty", expected="a name or an address", advice="0.0.0.0 listens on all")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for IPPROTO_TCP; else each response waits 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # after a kill the port may still be closing
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(WAITING)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise JustrightError(
                f"port {port} is in use; this review may already be open",
                advice="open the address it printed, or choose a port with --port; --port 0 takes a free one",
            ) from error
        raise JustrightError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return listening


def saved_token(file: Path) -> str:
    """Read or create the token of a review, readable by its owner only; open tabs survive a restart."""
    if file.exists() and TOKEN.fullmatch(token := file.read_text(encoding="ascii", errors="replace").strip()):
        file.chmod(0o600)
        return token
    token = secrets.token_urlsafe(24)
    with replacing(file) as temporary:
        temporary.unlink(missing_ok=True)
        temporary.touch(0o600, exist_ok=False)  # before it contains the token
        temporary.write_text(token, encoding="ascii")
    return token
