"""How good is `predict` on photos that a run never saw, and does it know what is in no category of the run?

    python benchmarks/study_new_photos.py RUN PHOTOS STRANGE [STRANGE ...]

RUN is a finished run with truth. PHOTOS has a folder for each class, all of them classes of the target of the run.
Prints All, mean confidence and calibration error; a cluster stands for the class that the truth of the run matches it
with. The images of each STRANGE folder are of no category of the run. Prints the area under the curve with which their
similarity to the images of the run, and the method's own score, separate them from PHOTOS.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import rankdata
from study_answers import calibration

from justright.data import ImageSet, open_images
from justright.discovery.evidence import probability_right
from justright.discovery.methods import METHODS
from justright.discovery.model_files import about_model
from justright.evaluation import Counts, match_counts
from justright.evaluation.files import classes_named
from justright.features.backbone import load_backbone
from justright.features.extract import extract
from justright.runs.run_folder import RunFolder


def area(inside: np.ndarray, outside: np.ndarray) -> float:
    """Area under the curve: the share of pairs in which the image of a category of the run has the larger score."""
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)]
    return float((ranks.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for PHOTOS and one for each STRANGE folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("photos")
    parser.add_argument("strange", nargs="+")
    parser.add_argument("--checkpoint", type=Path)
    options = parser.parse_args(arguments)
    run, about = RunFolder.open(options.run), about_model(options.run)
    network = about["backbone"]
    backbone = load_backbone(network["name"], options.checkpoint, "cpu", network["resolution"])
    method = METHODS[about["method"]].load(options.run, backbone)
    joint = method.joint_
    assert joint is not None, "the run has a joint answer"

    def predict(images: ImageSet):  # type: ignore[no-untyped-def]
        with TemporaryDirectory() as folder:
            tuned, frozen = (
                np.array(extract(images, network, Path(folder) / name).features, dtype=np.float32)
                for name, network in (("tuned", method.backbone_), ("frozen", method.backbone))
            )
        return joint.predict(frozen, tuned, method.assigner_.scores), method.assigner_.assign(tuned)[2]

    photos = open_images(options.photos)
    predicted, score = predict(photos)
    assert run.truth_file is not None, "the run has a truth"
    judged = run.judged(run.truth_file)
    y_true = classes_named([photos.classes[int(label)] for label in photos.labels], judged.class_names)
    is_right = match_counts(Counts.of(judged.y_true, judged.y_pred)).to_classes(predicted.category) == y_true
    calibrated = calibration(probability_right(predicted.evidence), is_right)
    print(
        f"{len(photos):,} new photos: {calibrated.accuracy:.1%} right, mean confidence {calibrated.confidence:.1%}, ",
        end="",
    )
    print(f"calibration error {calibrated.error:.1%}, area under the curve {calibrated.auc:.3f}")
    for source in options.strange:
        strange, strange_score = predict(open_images(source))
        areas = area(predicted.similarity, strange.similarity), area(score, strange_score)
        shares = [joint.is_neither(each.similarity, 0.01).mean() for each in (strange, predicted)]
        print(
            f"{source}: area under the curve {areas[0]:.3f} by similarity, {areas[1]:.3f} by the method's score; "
            f"called neither at 0.01: {shares[0]:.1%}, of the new photos {shares[1]:.1%}"
        )


if __name__ == "__main__":
    main()
