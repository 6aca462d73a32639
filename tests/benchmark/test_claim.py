from __future__ import annotations

from justright.benchmark.suite import NO_LABELS, Claim


def test_methods_are_compared_where_one_is_named():
    rows = {"better": ("beta",), "than": ("none",)}
    alike, plain = Claim("", **rows), Claim("", **rows, than_method="simgcd")
    two, each = (Claim("", **rows, method="mugcd", than_method=than) for than in ("simgcd", ""))
    assert [claim.method_of_better for claim in (alike, plain, two, each)] == ["", NO_LABELS, "mugcd", "mugcd"]
