from __future__ import annotations

import pytest

from justright.result import Result
from justright.review import server
from justright.review.security import Access
from justright.review.server import listen, saved_token
from justright.runs.run_folder import RunFolder
from justright.utils.errors import JustrightError


def test_token_is_reused_and_replaced_if_damaged(tmp_path):
    file = tmp_path / "review" / "token"
    token = saved_token(file)
    assert saved_token(file) == token
    assert len(token) == 32
    for damaged in ("", "short", "a b" * 11, "/" * 32):
        file.write_text(damaged)
        assert saved_token(file) not in ("", damaged, token)
    assert file.stat().st_mode & 0o777 == 0o600


def test_port_in_use_raises_with_advice():
    with listen("127.0.0.1", 0) as first:
        with pytest.raises(JustrightError, match="is in use") as error:
            listen("127.0.0.1", first.getsockname()[1])
        assert "--port" in error.value.advice


def test_foreign_address_cannot_be_bound():
    with pytest.raises(JustrightError, match="cannot listen"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("host", ["", " "])
def test_an_empty_host_is_refused(host):
    with pytest.raises(JustrightError, match="the host is empty"):
        listen(host, 0)


def test_a_result_opens_its_review(finished_run, monkeypatch, capsys):
    def announce(opened, host, port, reviewer, ready):
        assert (opened.run.path, host, port, reviewer) == (finished_run, "127.0.0.1", 0, "anna")
        ready(Access(host, 8473, "token"))

    monkeypatch.setattr(server, "serve", announce)
    Result(RunFolder.open(finished_run)).review(reviewer="anna")
    assert "http://127.0.0.1:8473/token/" in capsys.readouterr().out
