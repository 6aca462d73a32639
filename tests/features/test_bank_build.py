"""The work on a bank: what is missing and nothing else, under a name and counted."""

from __future__ import annotations

from tests.features.tiny_banks import bank_of, noise, tiny

from justright.features.bank_build import BankBuild, MissingBlock
from justright.features.view_work import ViewWork
from justright.features.workers import tools
from justright.utils.context import use


def test_each_phase_has_a_name_and_counts_its_views_to_the_end(tmp_path):
    seen = []

    def noted(steps, total, what):
        taken = []
        for step in steps:
            taken.append(step)
            yield step
        if not what.startswith("hashing"):
            seen.append((what, total, len(taken)))

    with use(progress=noted):
        bank = bank_of(tmp_path).build()
        next(bank.directory.glob("rows000000-view001*.npy")).unlink()
        bank_of(tmp_path).build()
        bank_of(tmp_path, n_views=1, transform="plain").build()
        bank_of(tmp_path, n_views=1, transform="strong").build()
    n_rows, n_shards = len(bank.blocks[0]), 3 * len(bank.blocks)
    assert seen == [
        ("computing 3 training views of each image", 21, 21),
        ("checking 3 training views of each image", n_shards - 1, n_shards - 1),
        ("computing 3 training views of each image", n_rows, n_rows),  # one view of one shard was missing
        ("computing plain views", 7, 7),
        ("computing 1 strong training view of each image", 7, 7),
    ]


def test_plain_views_have_the_same_bytes_in_a_batch_that_is_not_full(tmp_path):
    images, backbone = noise(7).with_ids(), tiny()
    bank = bank_of(tmp_path / "banks", images, transform="plain")
    work = ViewWork(images.readers, bank.drawer, bank.layout, backbone, tools(backbone.device), batch_size=5)
    paths = {rows: tmp_path / f"{rows.start}-{rows.stop}.npy" for rows in (range(7), range(2), range(2, 7))}
    build = BankBuild(images, backbone, work, 5)
    build.run([MissingBlock(rows, [0], [path]) for rows, path in paths.items()], None, "views")
    size = bank.layout.itemsize
    whole, first, last = (path.read_bytes()[-16 - len(rows) * size : -16] for rows, path in paths.items())
    assert whole == first + last
