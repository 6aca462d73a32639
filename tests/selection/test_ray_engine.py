from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from justright.errors import JustrightError
from justright.selection import ENGINES

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'justright[ray]'"
)


def test_ray_that_is_not_installed_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(JustrightError, match="Ray is not installed") as error, ENGINES["ray"](None):
        pass
    assert "pip install 'justright[ray]'" in error.value.advice


RAY_OF_OUR_OWN = """
from justright.selection import ENGINES
with ENGINES["ray"](1):
    import ray
    print([node["NodeManagerAddress"] for node in ray.nodes()])
print(ray.is_initialized())
"""


@needs_ray
def test_ray_of_our_own_is_reached_from_this_machine_only_and_ends_with_the_block():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", RAY_OF_OUR_OWN], capture_output=True, text=True, env=environment
    )
    assert (out.stdout, out.stderr) == ("['127.0.0.1']\nFalse\n", "")
