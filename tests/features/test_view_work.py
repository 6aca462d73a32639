"""Workers of a bank: the bytes of one process, though one of them is killed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.engines.lost_workers import FAR_ENGINES, deadly
from tests.features.tiny_banks import bank_of, tiny

from justright.data.sent_images import sent
from justright.data.views import transform_named
from justright.engines import ENGINES
from justright.errors import BadImageError, JustrightError
from justright.features.bank_records import record_type
from justright.features.view_work import ViewTask, ViewWork, stored_records
from justright.features.workers import tools

FEW = np.arange(7)


def files(bank):
    return {path.name: path.read_bytes() for path in bank.directory.glob("rows*")}


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("name", FAR_ENGINES)
def test_another_engine_gives_the_bytes_of_one_process_though_a_worker_is_killed(drawn, tmp_path, name):
    here = bank_of(tmp_path / "here", drawn.take(FEW)).build()
    doomed = deadly(drawn.take(FEW), tmp_path / "marks")
    with ENGINES[name](1) as engine:
        there = bank_of(tmp_path / "there", doomed, engine=engine).build()
    assert (tmp_path / "marks" / "decoded").exists(), "nobody was killed"
    assert files(there) == files(here) != {}


def work_on(images, backbone):
    layout = record_type(backbone.stored_names, backbone.stored_shapes, "float32")
    return ViewWork(images.readers, transform_named("weak"), backbone.recipe, 0, layout, backbone)


def test_pixels_that_another_device_computes_with_become_the_same_records(drawn):
    images, backbone = drawn.take(FEW).with_ids(), tiny()
    task, work = ViewTask(sent(images, range(2)), [0, 1], [0, 5]), work_on(images, backbone)
    drawn_only = ViewWork(work.readers, work.transform, work.recipe, work.seed, work.layout, None)
    later = [stored_records(backbone, work.layout, views) for views in drawn_only(task)]
    assert [each.tobytes() for each in later] == [each.tobytes() for each in work(task)]


def test_a_bad_image_is_named_by_its_row_in_the_whole_set(with_bad):
    images = with_bad.named_by([str(row) for row in range(len(with_bad))])
    row = images.paths.index("class0/003.png")
    with pytest.raises(BadImageError, match=f"image {row}:"):
        work_on(images, tiny())(ViewTask(sent(images, range(row, row + 1)), [row], [0]))


def test_a_machine_of_another_kind_is_refused(drawn):
    images, backbone = drawn.take(FEW).with_ids(), tiny()
    task, work = ViewTask(sent(images, range(2)), [0, 1], [0]), work_on(images, backbone)
    here = tools(backbone.device)
    assert len(replace(work, tools=here)(task)[0]) == 2
    with pytest.raises(JustrightError, match="a worker computes with"):
        replace(work, tools=here | {"torch": "1.0"})(task)
