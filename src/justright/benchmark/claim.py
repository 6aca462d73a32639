"""What the paper says of one of its tables, as a comparison of rows."""

from __future__ import annotations

from dataclasses import dataclass

NO_LABELS = "kmeans"  # sees no label, so no claim about labels is judged by it, unless it is named


@dataclass(frozen=True)
class Claim:
    """Something that the paper says of its table: some rows are better than others, or as good.

    What is compared is a mean over rows, paired by method, target and seed.
    """

    says: str  # the claim in our words
    better: tuple[str, ...]  # rows
    than: tuple[str, ...]  # rows
    group: str = "new"  # what is compared: all, old, new, new_as_old, new_as_new, probe
    than_group: str = ""  # the same for `than`, if it is another
    than_suite: str = ""  # the suite that `than` stands in, if it is another; its results must lie in the same folder
    method: str = ""  # the method of `better` where methods are compared; k-means if only that of `than` is named
    than_method: str = ""  # the method of `than`; where only `method` is named, every other one
    targets: tuple[str, ...] = ()  # only these of the paper's targets; all if empty
    within: float | None = None  # points of difference that still count as equal, where equality is claimed
    behind: float = 0.0  # points that `better` may be behind, where it is only claimed to be as good

    @property
    def method_of_better(self) -> str:
        """The one method that is compared with others; empty where every method is compared with itself."""
        return self.method or (NO_LABELS if self.than_method else "")
