"""Fixtures of the tests of features: a table, drawn images, some of them bad.

Networks in these tests are tiny: more threads would only slow them down.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.features.tiny_extraction import draw

from justright.data.folder import open_folder
from justright.features.table import FeatureTable

torch.set_num_threads(1)


@pytest.fixture
def table():
    features = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    label = [0, 0, 1, 1, 2, 2, -1, -1, 0, 1]
    names = [{0: "ant", 1: "bee", 2: "cat"}.get(each) for each in label]
    return FeatureTable.of(features, label=label, class_name=names, path=[f"{i}.png" for i in range(10)])


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("drawn"))


@pytest.fixture
def with_bad(tmp_path):
    draw(tmp_path / "images")
    (tmp_path / "images" / "class0" / "003.png").write_bytes(b"no picture")
    (tmp_path / "images" / "class1" / "064.png").write_bytes(b"")
    whole = (tmp_path / "images" / "class2" / "005.png").read_bytes()
    (tmp_path / "images" / "class2" / "005.png").write_bytes(whole[: len(whole) // 2])
    images = open_folder(tmp_path / "images")
    (tmp_path / "images" / "class2" / "008.png").unlink()
    return images
