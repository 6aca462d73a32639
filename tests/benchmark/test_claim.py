from __future__ import annotations

from justright.benchmark.suite import NO_LABELS, Claim


def test_method_of_better_follows_the_named_methods():
    rows = {"better": ("beta",), "than": ("none",)}
    alike, plain = Claim("", **rows), Claim("", **rows, than_method="simgcd")
    two, each = (Claim("", **rows, method="mugcd", than_method=than) for than in ("simgcd", ""))
    assert [claim.method_of_better for claim in (alike, plain, two, each)] == ["", NO_LABELS, "mugcd", "mugcd"]
