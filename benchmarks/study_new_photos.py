"""How good is `predict` on photos that a run never saw, and does it know what is in no category of the run?

    python benchmarks/study_new_photos.py RUN PHOTOS STRANGE [STRANGE ...]

RUN is a finished run with truth. PHOTOS has a folder a class, of classes that are in the target of the run: All, mean
confidence and calibration error of their categories are printed, where clusters stand for the classes that the run's
own truth matches them with. Images of each STRANGE folder are of no category of the run: printed is the area under the
curve with which their similarity to the images of the run, and the method's own score, tell them from PHOTOS.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import rankdata

from justright.data import ImageSet, open_images
from justright.discovery.evidence import probability_right
from justright.discovery.methods import METHODS
from justright.discovery.model_files import about_model
from justright.evaluation import Counts, match_counts
from justright.evaluation.calibration import calibration
from justright.evaluation.files import classes_named
from justright.features.backbone import load_backbone
from justright.features.extract import extract
from justright.runs.run_folder import RunFolder


def area(inside: np.ndarray, outside: np.ndarray) -> float:
    """How often an image of the run's categories has the larger score, of all pairs."""
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)]
    return float((ranks.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for the photos, and one for each folder of strange ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("photos")
    parser.add_argument("strange", nargs="+")
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args(arguments)
    run, about = RunFolder.open(options.run), about_model(options.run)
    of = about["backbone"]
    backbone = load_backbone(of["name"], options.checkpoint, "cpu", of["resolution"])
    method = METHODS[about["method"]].load(options.run, backbone)
    joint = method.joint_
    assert joint is not None, "the run has a joint answer"

    def followed(images: ImageSet):  # type: ignore[no-untyped-def]
        with TemporaryDirectory() as folder:
            tuned, frozen = (
                np.array(extract(images, network, Path(folder) / name).features, dtype=np.float32)
                for name, network in (("tuned", method.backbone_), ("frozen", method.backbone))
            )
        return joint.predict(frozen, tuned, method.assigner_.scores), method.assigner_.assign(tuned)[2]

    photos = open_images(options.photos)
    found, best = followed(photos)
    assert run.truth_file is not None, "the run has a truth"
    judged = run.judged(run.truth_file)
    y_true = classes_named([photos.classes[int(label)] for label in photos.labels], judged.class_names)
    is_right = match_counts(Counts.of(judged.y_true, judged.y_pred)).to_classes(found.category) == y_true
    calibrated = calibration(probability_right(found.evidence), is_right)
    print(
        f"{len(photos):,} new photos: {calibrated.accuracy:.1%} right, mean confidence {calibrated.confidence:.1%}, ",
        end="",
    )
    print(f"calibration error {calibrated.error:.1%}, area under the curve {calibrated.auc:.3f}")
    for source in options.strange:
        other, other_best = followed(open_images(source))
        areas = area(found.similarity, other.similarity), area(best, other_best)
        share = joint.is_neither(other.similarity, 0.01).mean(), joint.is_neither(found.similarity, 0.01).mean()
        print(
            f"{source}: area under the curve {areas[0]:.3f} by similarity, {areas[1]:.3f} by the method's score; "
            f"called neither at 0.01: {share[0]:.1%}, of the new photos {share[1]:.1%}"
        )


if __name__ == "__main__":
    main()
