from __future__ import annotations

from threading import Thread

from justright.utils.context import current, outermost_only, silent, track, use


def recorder(seen):
    def record(steps, total, what):
        seen.append(what)
        yield from steps

    return record


def test_track_uses_the_progress_of_the_surrounding_block():
    seen = []
    assert list(track("ab", 2, "outside")) == ["a", "b"]
    with use(progress=recorder(seen)):
        assert list(track("ab", 2, "inside")) == ["a", "b"]
    assert seen == ["inside"]
    assert current().progress is silent


def test_use_changes_only_the_given_fields():
    with use(command="justright demo"), use(progress=recorder([])) as context:
        assert context.command == "justright demo" == current().command
    assert current().command == ""


def test_another_thread_starts_with_the_default_context():
    found = []
    with use(command="justright demo"):
        thread = Thread(target=lambda: found.append(current().command))
        thread.start()
        thread.join()
    assert found == [""]


def test_outermost_only_hides_nested_loops():
    seen = []
    with use(progress=outermost_only(recorder(seen))):
        for _ in track(range(2), 2, "outer"):
            assert list(track(range(3), 3, "inner")) == [0, 1, 2]
        list(track(range(1), 1, "next"))
    assert seen == ["outer", "next"]


def test_stopped_loop_does_not_hide_the_next_one():
    seen = []
    with use(progress=outermost_only(recorder(seen))):
        for _ in track(range(2), 2, "left"):
            break
        list(track(range(1), 1, "next"))
    assert seen == ["left", "next"]
