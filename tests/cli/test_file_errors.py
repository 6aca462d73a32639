from __future__ import annotations

import errno

from justright.cli.file_errors import message_of


def test_a_full_disk_says_what_was_written_and_how_to_go_on():
    said = message_of(OSError(errno.ENOSPC, "No space left on device", "/run/tuned.npy")).splitlines()
    assert said[0] == "/run/tuned.npy cannot be written: No space left on device"
    assert said[1].startswith("Try: free some room (`justright cache list`")
    assert said[1].endswith("the same command again: what was finished is kept")


def test_a_limit_without_a_name_is_still_said():
    said = message_of(OSError(errno.EFBIG, "File too large"))
    assert said.startswith("a file cannot be written: File too large\nTry: allow larger files")


def test_what_may_have_been_reading_is_told_as_such_and_no_message_is_empty():
    denied = PermissionError(errno.EACCES, "Permission denied", "/attic")
    assert message_of(denied) == "/attic cannot be written or read: Permission denied\nTry: name another place"
    assert message_of(OSError("odd")).startswith("odd\n")
    assert message_of(OSError()).startswith("OSError\n")
