"""Attacks on a real server: every one is refused, and nothing is written."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.review.live import LiveReview

from justright.review.security import MAX_BODY, Access

KEEP = {"id": "ab" * 16, "base": 0, "reviewer": "anna", "action": {"do": "keep", "cluster": 0}}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def live(finished_run, tmp_path_factory):
    review = LiveReview(Path(shutil.copytree(finished_run, tmp_path_factory.mktemp("attacked") / "run")))
    review.start()
    yield review
    review.stop()


def ask(live, method="GET", path="status", body=None, headers=None, token=None, host=None):
    url = urlsplit(live.url)
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=10)
    token = url.path.strip("/") if token is None else token
    connection.putrequest(
        method, f"/{token}/{path}" if token else f"/{path}", skip_host=True, skip_accept_encoding=True
    )
    connection.putheader("Host", host if host is not None else url.netloc)
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    if data is not None and "Content-Length" not in (headers or {}):
        connection.putheader("Content-Length", str(len(data)))
    connection.endheaders()
    if data:
        connection.send(data)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content, {name.lower(): value for name, value in response.getheaders()}


def files_of(run: Path) -> dict[str, bytes]:
    return {str(f.relative_to(run)): f.read_bytes() for f in sorted(run.rglob("*")) if f.is_file()}


@pytest.fixture(autouse=True)
def nothing_is_written(live):
    before = files_of(live.run)
    yield
    after = files_of(live.run)
    thumbnails = {name for name in after if "thumbnails" in name}
    assert {name: data for name, data in after.items() if name not in thumbnails} == {
        name: data for name, data in before.items() if name not in thumbnails
    }


def test_valid_request_is_answered(live):
    status, _, headers = ask(live)
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers
    assert "server" not in headers
    assert ask(live, path="", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        ":{}",
        "[]:{}",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{}",
        "evil:{}",
        "[::2]:{}",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_is_refused(live, host, method):
    host = host.format(live.port)
    assert ask(live, method, "act" if method == "POST" else "", KEEP, JSON, host=host)[0] in (400, 421)


@pytest.mark.parametrize("token", ["", "wrong", "%00", "..", "static", "a" * 32])
def test_request_without_token_is_rejected(live, token):
    for method, path in (("GET", ""), ("GET", "images/0/160"), ("GET", "static/review.js"), ("POST", "act")):
        status, content, _ = ask(live, method, path, KEEP if method == "POST" else None, JSON, token=token)
        assert status == 403
        assert live.url.split("/")[3].encode() not in content


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Origin": "https://127.0.0.1:{}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_a_write_from_another_site_is_refused(live, headers):
    headers = {name: value.format(live.port) for name, value in headers.items()}
    assert ask(live, "POST", "act", KEEP, JSON | headers)[0] == 403
    assert ask(live, "POST", "export", {"form": "csv"}, JSON | headers)[0] == 403


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("header", ["", "Host:\r\n", "Host: \r\n"])
def test_a_missing_or_empty_host_is_refused(live, version, header):
    path = urlsplit(live.url).path
    with live.connect(f"GET {path}status HTTP/{version}\r\n{header}\r\n".encode()) as connection:
        assert connection.recv(12).split()[1] in (b"400", b"421")


def test_another_site_cannot_embed_images(live):
    assert (
        ask(live, path="images/0/160", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0] == 403
    )
    assert ask(live, path="images/0/160")[2]["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_form_submissions_are_rejected(live, kind):
    assert ask(live, "POST", "act", KEEP, {"Content-Type": kind})[0] == 415


@pytest.mark.parametrize(
    "path",
    [
        "static/../log.py", "static/..%2flog.py", "static/%2e%2e/log.py", "static//etc/passwd", "static/log.py",
        "images/..%2f..%2fetc%2fpasswd/160", "images/-1/160", "images/0/161", "images/999999/160", "images/1e3/160",
        "images/99999999999999999999/160", "images/0/160/../../../run.json", "export/..%2frun.json", "export/token",
        "export/%2e%2e%2ftoken", "export/labels.csv", "../token", "token", "review/token", "docs", "openapi.json",
        "\\..\\token", "clusters/-2", "clusters/x", "clusters/0/images?limit=999999", "clusters/0/images?order=;rm",
        "clusters/0/near?rows=../a",
        "clusters?offset=-1", "clusters?limit=0", f"clusters?search={'a' * 500}", "check", f"check?reviewer={'a' * 99}",
    ],
)  # fmt: skip
def test_paths_cannot_leave_the_page(live, path):
    status, content, _ = ask(live, path=path)
    assert status in (400, 403, 404, 422)
    assert b"root:" not in content
    assert b"justright run 1" not in content
    assert live.url.split("/")[3].encode() not in content


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(live, method):
    assert ask(live, method, "act", KEEP, JSON)[0] in (400, 405)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b'"keep"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 20_000, b"1" * 5000, b"NaN",
        json.dumps(KEEP | {"extra": 1}).encode(),
        json.dumps(KEEP | {"id": "../../x"}).encode(),
        json.dumps(KEEP | {"base": -1}).encode(),
        json.dumps(KEEP | {"reviewer": "a\nb"}).encode(),
        json.dumps(KEEP | {"reviewer": "\ud800"}).encode(),
        json.dumps(KEEP | {"action": {"do": "keep", "cluster": 10**400}}).encode(),
        json.dumps(KEEP | {"action": {"do": "keep", "cluster": 0, "\ud800": 0}}).encode(),
        json.dumps(KEEP | {"action": {"do": "\ud800"}}).encode(),
        json.dumps(KEEP | {"action": {"do": {"keep": 1}}}).encode(),
        json.dumps(KEEP | {"\ud800": 1}).encode(),
        json.dumps(KEEP | {"action": {"do": "name", "cluster": 0, "name": "a\u0000"}}).encode(),
        json.dumps(KEEP | {"action": {"do": "name", "cluster": 0, "name": "<script>" * 100}}).encode(),
        json.dumps(KEEP | {"action": {"do": "part", "cluster": 0, "parts": [[0]]}}).encode(),
        json.dumps(KEEP | {"action": {"do": "keep", "cluster": 123456}}).encode(),
    ],
)  # fmt: skip
def test_a_malformed_body_is_refused(live, body):
    status, content, _ = ask(live, "POST", "act", body, JSON)
    assert status in (400, 409, 422)
    assert json.loads(content)


def test_an_oversized_body_is_refused_before_it_is_read(live):
    assert ask(live, "POST", "act", b"", JSON | {"Content-Length": str(10**12)})[0] == 413
    assert ask(live, "POST", "act", b"", JSON | {"Content-Length": "-1"})[0] in (400, 413)


def test_an_oversized_body_in_chunks_is_refused(live):
    url = urlsplit(live.url)
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as raw:
        head = f"POST {url.path}act HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        raw.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
        try:
            for _ in range(MAX_BODY // 0x8000 + 20):
                raw.sendall(chunk)
        except (ConnectionResetError, BrokenPipeError):
            pass
        assert b" 413 " in raw.recv(200)


def test_a_huge_header_or_path_is_refused(live):
    for path, headers in (("a" * 100_000, {}), ("status", {"X": "a" * 100_000})):
        with contextlib.suppress(ConnectionError, http.client.HTTPException):  # the connection may be cut
            assert ask(live, path=path, headers=headers)[0] in (400, 404, 414, 431)


def test_browser_cannot_choose_the_export_path(live):
    for extra in ({"path": "/elsewhere/x"}, {"form": "../x"}, {"form": "csv", "name": "x"}):
        assert ask(live, "POST", "export", {"form": "csv"} | extra, JSON)[0] == 422


def test_token_file_is_readable_by_its_owner_only(live):
    file = live.run / "review" / "token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() in live.url


@pytest.mark.parametrize(
    ("listening", "host", "is_known"),
    [
        ("127.0.0.1", "localhost:80", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "[::1]:80", True),
        ("127.0.0.1", "192.168.0.1:80", False),
        ("192.168.0.1", "192.168.0.1:80", True),
        ("0.0.0.0", "192.168.0.1:80", True),
        ("0.0.0.0", "rebound.example:80", False),
        ("::", "[fe80::1]:80", True),
        ("::", "rebound.example:80", False),
        ("127.0.0.1", "", False),
        ("", "", False),
        ("", ":80", False),
        ("", "[]:80", False),
    ],
)
def test_hosts_that_name_the_server(listening, host, is_known):
    assert Access(listening, 80, "t").knows(host) is is_known


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False)],
)
def test_loopback_hosts(host, is_loopback):
    assert Access(host, 80, "t").is_loopback is is_loopback
