"""Correct the categories of a run in FiftyOne: python examples/fiftyone.py run/ in-fiftyone/ [REVIEWER]

run/ is what `justright discover` wrote, in-fiftyone/ a new folder with links to the images and their labels. Once the
page of FiftyOne is closed, what was corrected is in the review of the run: one action, which its page can undo.
"""

from __future__ import annotations

import sys
from pathlib import Path

from justright import JustrightError, Result

# Python looks for modules beside this script first, and would import the script itself as fiftyone
sys.path = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]
try:
    import fiftyone
except ImportError:
    sys.exit("This example needs FiftyOne: pip install fiftyone")


def main(run: str, folder: str, reviewer: str = "fiftyone") -> None:
    result = Result.open(run)
    result.export("fiftyone", folder)

    kind = fiftyone.types.FiftyOneImageClassificationDataset
    dataset = fiftyone.Dataset.from_dir(dataset_dir=folder, dataset_type=kind, label_field="category")
    least_sure = dataset.sort_by("category.confidence")  # look at these first
    fiftyone.launch_app(dataset, view=least_sure).wait()  # until its page is closed

    back = str(Path(folder) / "corrected")
    dataset.export(
        export_dir=back,
        dataset_type=kind,
        label_field="category",
        rel_dir=str(Path(folder).absolute() / "data"),  # names keep their folders
        export_media=False,
    )
    done = result.import_labels(back, reviewer=reviewer)
    print(f"{done.n_moved} of {done.n_labels} images have another category now")
    for name in done.named:
        print(f"new name: {name}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except JustrightError as error:
        sys.exit(str(error))
