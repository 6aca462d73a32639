"""RunSpec: everything a run was asked for, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from justright.runs.problem import PoolRole

Scale = Literal["paper", "small"]


@dataclass(frozen=True)
class RunSpec:
    """One selector, one method, one seed.

    pool_role says whether classes of the pool only guide learning or are categories too. Selection weighs the pool;
    with select_labeled it weighs the target's own classes as well, which otherwise keep the weight 1.
    n_resamples is how often the selection is repeated on resamples, to tell how stable it is; 0 for never.
    selector_params and settings hold what differs from the defaults of the selector and of the method's config. scale
    "small" takes lighter defaults for a CPU (`discovery.configs.small`). n_target is K, the number of categories in the
    target; None estimates it with `counter`.
    """

    pool_role: PoolRole = "guide"
    selector: str = "none"
    selector_params: Mapping[str, Any] = field(default_factory=dict)
    select_labeled: bool = False
    n_resamples: int = 10
    weighting: str = "auto"
    method: str = "simgcd"
    scale: Scale = "paper"
    settings: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = "dinov2_vitb14"
    checkpoint: Path | None = None
    img_size: int | None = None
    device: str = "cpu"
    n_target: int | None = None
    counter: str = "combined"
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values; a path as text."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
