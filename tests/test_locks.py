from __future__ import annotations

import sys

import pytest

from justright.locks import has_locks, lock, unlock


@pytest.fixture
def opened(tmp_path):
    def make():
        return (tmp_path / "lock").open("a")

    with make() as one, make() as other:
        yield one, other


def test_a_second_lock_is_refused_until_the_first_ends(opened):
    one, other = opened
    assert lock(one)
    assert not lock(other, waits=False)
    unlock(one)
    assert lock(other, waits=False)


def test_readers_share_a_lock_that_keeps_writers_out(opened):
    one, other = opened
    assert lock(one, is_shared=True)
    assert lock(other, is_shared=True, waits=False)
    assert not lock(other, waits=False)


def test_without_locks_nobody_is_refused(opened, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    one, other = opened
    assert lock(one)
    assert lock(other, waits=False)
    unlock(one)


def test_the_system_says_whether_it_has_locks():
    assert has_locks() == (sys.platform != "win32")
