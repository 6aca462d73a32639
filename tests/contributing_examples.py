"""The examples of CONTRIBUTING, executed as they stand there: things that somebody adds from outside the package."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^### Add an? (.+?)\n.*?```python\n(.*?)```", re.S | re.M)


def example(thing: str) -> ModuleType:
    """What `### Add a THING` defines; whoever asks takes it out of its registry again."""
    made = ModuleType(f"added_{thing.replace(' ', '_')}")
    sys.modules[made.__name__] = made  # where dataclasses look for their annotations
    exec(compile(dict(BLOCK.findall(TEXT))[thing], "CONTRIBUTING.md", "exec", dont_inherit=True), vars(made))
    return made
