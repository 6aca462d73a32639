"""What `justright discover` prints about a finished run."""

from __future__ import annotations

from justright.cli.terminal import Terminal
from justright.runs.cluster_table import NAME as CLUSTERS
from justright.runs.left_out import NAME as LEFT_OUT
from justright.runs.run_folder import RunFolder


def show_run(terminal: Terminal, run: RunFolder, with_report: bool = True) -> None:
    """Print what a finished run found and where its files lie, and write its report."""
    found, about = run.predictions, run.about
    sizes: dict[str, list[int]] = {"known": [], "discovered": []}
    for category, size in zip(found.categories, found.sizes, strict=True):
        sizes[category.kind].append(int(size))
    terminal.table(
        f"{len(found):,} images of the target",
        ("kind", "categories", "with images", "images"),
        [
            (title, len(sizes[kind]), sum(size > 0 for size in sizes[kind]), sum(sizes[kind]))
            for kind, title in (("known", "known classes"), ("discovered", "discovered clusters"))
        ],
    )
    written = [run.path / f"predictions.{ending}" for ending in ("csv", "parquet")]
    written += [run.path / CLUSTERS] if (run.path / CLUSTERS).exists() else []  # earlier versions wrote none
    if with_report:
        from justright.report.run_report import write_report  # matplotlib is slow to import

        written.append(write_report(run, run.path / "report.html", track=terminal.track))
    if run.left_out:
        written.append(run.path / LEFT_OUT)
    others = "other images" if found.is_given.any() else "images"
    lines = [
        *([run.expected.in_words(others)] if run.expected and run.expected.n else []),
        f"K of the target: {about['n_target']} ({about['k_source']}). Backbone: {about['backbone']['name']}. "
        f"Seed: {about['seed']}. Confidence rests on {about['calibrated_on']}.",
        *([] if run.scores is None else [str(run.scores)]),
        *(f"Note: {note}." for note in about["notes"]),
        "Seconds: " + ", ".join(f"{stage} {spent:.1f}" for stage, spent in about["seconds"].items()),
        *(f"Written: {path}" for path in written),
        f"Look through the clusters: justright review {run.path}",
    ]
    value = {
        "run": str(run.path),
        "images": len(found),
        **{name: about[name] for name in ("n_target", "k_source", "backbone", "seed")},
        "categories": {kind: len(each) for kind, each in sizes.items()},
        "n_categories": len(found.categories),
        "n_used": sum(size > 0 for each in sizes.values() for size in each),
        "pool_role": about["pool_role"],
        "n_copies": about["asked"]["copies left out"],
        "n_given": int(found.is_given.sum()),
        "notes": about["notes"],
        "left_out": about.get("left_out", {}),
        "expected_right": about.get("expected_right"),
        "scores": None if run.scores is None else run.scores.to_dict(),
        "seconds": about["seconds"],
        "written": [str(path) for path in written],
    }
    terminal.result(value, "\n".join(lines))
