from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.engines.lost_workers import needs_ray

from justright.engines import ENGINES
from justright.engines.ray_engine import _connect
from justright.utils.errors import JustrightError


def test_ray_that_is_not_installed_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(JustrightError, match="Ray is not installed") as error, ENGINES["ray"](None):
        pass
    assert "pip install 'justright[ray]'" in error.value.advice


RAY_OF_OUR_OWN = """
from justright.engines import ENGINES
from justright.engines.ray_engine import _connect
with ENGINES["ray"](1):
    import ray
    print([node["NodeManagerAddress"] for node in ray.nodes()])
    from ray._raylet import AuthenticationMode, get_authentication_mode
    print(get_authentication_mode() == AuthenticationMode.TOKEN)
print(ray.is_initialized())
"""


@needs_ray
def test_ray_of_our_own_takes_a_token_listens_to_this_machine_only_and_ends_with_the_block(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["HOME"] = str(tmp_path)
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", RAY_OF_OUR_OWN], capture_output=True, text=True, env=environment
    )
    assert (out.stdout, out.stderr) == ("['127.0.0.1']\nTrue\nFalse\n", "")
    assert not (tmp_path / ".ray").exists()  # where Ray would leave a token that all users of the machine can read


def test_a_cluster_that_cannot_be_reached_is_named_with_what_to_set(monkeypatch):
    class NoRay:
        def init(self, **options):
            raise ConnectionError("nobody there")

    monkeypatch.setenv("RAY_ADDRESS", "far:6379")
    with pytest.raises(JustrightError, match="cluster at far:6379 cannot be reached: nobody there") as error:
        _connect(NoRay(), 1)
    assert "RAY_AUTH_MODE=token" in error.value.advice
