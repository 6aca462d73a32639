"""Workers of an extraction: the same bytes as one process, even if some of them are killed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.features.tiny_extraction import contents, run, tiny
from tests.lost_workers import FAR_ENGINES, deadly

from justright.data.image_set import sent
from justright.features.extract import FeatureNetwork, compute_features, decode_images
from justright.utils.errors import JustrightError
from justright.utils.parallel import ENGINES


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("name", FAR_ENGINES)
def test_engine_is_byte_identical_with_killed_workers(with_bad, tmp_path, name):
    run(with_bad, tmp_path / "here", max_bad=0.1)
    doomed = deadly(with_bad, tmp_path / "marks")
    with ENGINES[name](1) as engine:
        table = run(doomed, tmp_path / "there", max_bad=0.1, engine=engine)
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["decoded"], "no worker was killed"
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert len(table.quarantined) == 4


def test_worker_with_other_versions_raises(drawn):
    network = FeatureNetwork(tiny(), 2, "float32", "class")
    decoded = decode_images(drawn.readers, network.backbone.recipe, 2, sent(drawn, range(2)))
    compute = partial(compute_features, network)
    assert compute(network.tools(), None, decoded).features.shape == (2, 16)
    with pytest.raises(JustrightError, match="a worker computes with") as error:
        compute(network.tools() | {"torch": "1.0"}, None, decoded)
    assert "'torch': '1.0'" in error.value.expected


def test_small_batch_is_filled_with_black_images(drawn):
    pixels, bad = decode_images(drawn.readers, tiny().recipe, 2, sent(drawn, range(1)))
    assert pixels.shape == (2, 3, 16, 16)
    assert not np.any(pixels[1])
    assert not bad
