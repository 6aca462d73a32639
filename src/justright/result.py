"""The result of a run: predictions, clusters, expected accuracy, and the model for other images."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from justright.data import ImageSet, open_images
from justright.data.quarantine import MAX_BAD
from justright.data.vectors import has_vectors, vector_set, vectors_of
from justright.discovery.evidence import ExpectedRight
from justright.discovery.methods import METHODS
from justright.discovery.predictions import NEITHER_SHARE, Predictions
from justright.evaluation import Scores
from justright.runs.cluster_table import cluster_table
from justright.runs.run_folder import RunFolder
from justright.runs.spec import resolve_device
from justright.utils.context import bar, current, outermost_only, silent, use
from justright.utils.errors import DataError

if TYPE_CHECKING:
    from justright.review.security import Access
    from justright.review.tools import Imported

Source = Any
"""A folder, zip, CSV or Parquet file, `NAME:FOLDER` of a known data set, a list of paths, a dict from class to paths, a
DataFrame with `path` and `label`, a torchvision-style or Hugging Face dataset, or an ImageSet."""

VECTORS = "vectors"  # the name of the backbone of runs on given features
PREDICTION_COLUMNS = ["path", "category", "kind", "confidence", "source"]


class Result:
    """A finished run: its predictions, clusters, expected accuracy, and what one can do with them.

    Examples:
        >>> result = justright.discover("photos/", labeled="labeled/", out="run")
        >>> result.predictions.head()
        >>> result = justright.Result.open("run")  # the same, later
    """

    def __init__(self, run: RunFolder | str | Path):
        self.run = run if isinstance(run, RunFolder) else RunFolder.open(Path(run))

    @classmethod
    def open(cls, path: str | Path) -> Result:
        """The result in a folder that `discover` wrote."""
        return cls(path)

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.run.path

    @property
    def predictions(self) -> Any:
        """One row for each target image: path, category, kind (known or discovered), confidence, source."""
        return _as_frame(self.run.predictions.table().select(PREDICTION_COLUMNS))

    @property
    def clusters(self) -> Any:
        """One row for each category: category, kind, images, expected_purity, doubt, and with which other category."""
        return _as_frame(cluster_table(self.run.predictions, self.run.doubts, self.run.expected is not None))

    @property
    def expected_right(self) -> ExpectedRight | None:
        """How many images are expected to be right, with an interval; None if confidences are not calibrated."""
        return self.run.expected

    @property
    def n_categories(self) -> int:
        """Number of categories: known classes and new clusters."""
        return len(self.run.predictions.categories)

    @property
    def scores(self) -> Scores | None:
        """Accuracy of All, Old and New, if the truth was given."""
        return self.run.scores

    @property
    def notes(self) -> list[str]:
        """Remarks on this run, such as how K was estimated or which images were skipped."""
        return list(self.run.about["notes"])

    def predict(
        self,
        source: Source,
        *,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        neither: float = NEITHER_SHARE,
        max_bad: float = MAX_BAD,
        progress: bool = True,
    ) -> Any:
        """Category and confidence of other images, by the trained model; the same columns as `predictions`.

        Parameters:
            source: images, as for `discover`; for a run on given features an array of such features.
            device: where the network runs; auto: the first one that works.
            checkpoint: file or folder with the weights of the backbone, if it is not where the run found it.
            neither: an image that fits worse than all but this share of the target's images fits no category; 0: never.
            max_bad: largest share of images that may be unreadable; they are left out.
            progress: show progress bars.
        """
        with showing_progress(progress):
            images = vector_set(source) if self.run.about["backbone"]["name"] == VECTORS else open_images(source)
            predictions, _ = predict(
                self.path,
                images.without_labels(),
                device=device,
                checkpoint=checkpoint,
                neither=neither,
                max_bad=max_bad,
            )
        return _as_frame(predictions.table().select(PREDICTION_COLUMNS))

    def report(self, out: str | Path | None = None) -> Path:
        """Write the report as one HTML page, by default `report.html` in the folder of the run; returns its path."""
        from justright.report.run_report import write_report

        path = self.path if out is None else Path(out)
        return write_report(self.run, path / "report.html" if path.is_dir() else path)

    def review(self, *, host: str = "127.0.0.1", port: int = 0, reviewer: str = "") -> None:
        """Serve the page on which clusters are named and corrected, until it is interrupted; prints its address."""
        from justright.review.open_review import OpenReview
        from justright.review.server import serve

        def announce(access: Access) -> None:
            import click

            click.echo(f"{access.url}\nInterrupt to stop; every action is saved already.")

        serve(OpenReview(self.run), host, port, reviewer, announce)

    def export(self, to: str, out: str | Path, *, is_copy: bool = False) -> str:
        """Write the labels for another labeling tool, as `justright export` does; returns how the tool gets them.

        Parameters:
            to: label-studio, coco, fiftyone, cvat, csv or folders.
            out: the new folder, for csv the file.
            is_copy: copy the images into the folder.
        """
        from justright.review.open_review import OpenReview
        from justright.review.tools import export_to

        return export_to(OpenReview(self.run), to, Path(out), is_copy=is_copy).usage

    def import_labels(self, source: str | Path, *, reviewer: str, form: str | None = None) -> Imported:
        """Enter labels that were corrected in another tool into the review, as one action; returns what changed.

        Parameters:
            source: the file or folder that the tool saved.
            form: its format, one of those of `export`; by default it is detected.
        """
        from justright.review.open_review import OpenReview
        from justright.review.tools import import_from

        return import_from(OpenReview(self.run), Path(source), reviewer, form)

    def __repr__(self) -> str:
        expected = self.expected_right
        sentence = "" if expected is None or not expected.n else f" {expected.in_words()}"
        n_images = len(self.run.predictions)
        return f"<Result: {n_images:,} images in {self.n_categories} categories, {self.path}.{sentence}>"

    def _repr_html_(self) -> str:
        from justright.report.notebook import result_html

        return result_html(self.run)


def predict(
    run: Path,
    images: ImageSet,
    *,
    device: str = "auto",
    checkpoint: str | Path | None = None,
    neither: float = NEITHER_SHARE,
    max_bad: float = MAX_BAD,
) -> tuple[Predictions, Any]:
    """Category and confidence of images by the model of a run, and the model; parameters as in `Result.predict`.

    An image of the run's target keeps its category and confidence, a labeled image its label.
    """
    from justright.discovery.model_files import about_model

    about, folder = about_model(run), RunFolder(run)
    name, size = about["backbone"]["name"], about["backbone"]["resolution"]
    if name == VECTORS and not has_vectors(images):
        raise DataError(
            f"{run} is a run on features that were given, and these are images",
            expected="features of the same network, one row per image",
            advice=f'in Python: justright.Result.open("{run}").predict(features)',
        )
    network = network_of(images, name, optional_path(checkpoint), resolve_device(device), size)
    model = METHODS[about["method"]].load(run, network)
    predictions = model.predict(images, neither=neither, max_bad=max_bad, given=folder.given_labels())
    return folder.with_own_answers(predictions, images), model


def network_of(images: ImageSet, name: str, checkpoint: Path | None, device: str, img_size: int | None) -> Any:
    """The backbone of this name, or the one for images whose features were given; a run keeps their length as size."""
    from justright.features.automatic import usable
    from justright.features.backbone import load_backbone
    from justright.features.vectors import VectorNetwork

    if name == VECTORS:
        return VectorNetwork(img_size or vectors_of(images.take([0])).shape[1], usable(device))
    return load_backbone(name, checkpoint, usable(device), img_size)


def optional_path(path: str | Path | None) -> Path | None:
    """A path, if there is one."""
    return None if path is None else Path(path)


def showing_progress(progress: bool) -> Any:
    """A context that shows progress bars or none. Keeps a display of progress that the caller has set."""
    if not progress:
        return use(progress=silent)
    return use(progress=outermost_only(bar)) if current().progress is silent else nullcontext()


def _as_frame(table: pa.Table) -> Any:
    """A pandas DataFrame where pandas is installed, else the Arrow table; repeated text as plain strings."""
    columns = {
        name: pc.cast(table[name], pa.string()) if pa.types.is_dictionary(table[name].type) else table[name]
        for name in table.column_names
    }
    table = pa.table(columns)
    try:
        import pandas  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        return table
    return table.to_pandas()
