"""From the options of `justright discover` to the spec of a run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
from click.core import ParameterSource

from justright.cli.selector_options import given_params
from justright.errors import JustrightError
from justright.files import parsed_json
from justright.runs.given_weights import GIVEN
from justright.runs.spec import RunSpec


def run_spec(
    *,
    preset: str | None,
    scale: str,
    epochs: int | None,
    minutes: float | None,
    held_out: float,
    settings: tuple[str, ...],
    **options: Any,
) -> RunSpec:
    """What the options ask for; those that are no field of RunSpec are parameters of the selector."""
    asked = {field.name: options.pop(field.name) for field in fields(RunSpec) if field.name in options}
    is_named = click.get_current_context().get_parameter_source("selector") is ParameterSource.COMMANDLINE
    if asked["weights"] is not None and (is_named or preset):
        raise JustrightError("--weights together with --selector or --preset", expected="one of them says what counts")
    if preset == "paper":
        asked |= {"pool_role": "rival", "select_labeled": True}
        asked["selector"] = asked["selector"] if is_named else "beta"
    if asked["n_target"] is None:
        asked["n_target"] = options.get("n_clusters")
    params = given_params(asked["selector"], options, preset)
    length = {name: value for name, value in (("n_epochs", epochs), ("minutes", minutes)) if value is not None}
    return RunSpec(
        selector_params=params,
        scale=chosen_scale(scale, asked["device"]),
        settings={"held_out_share": held_out} | length | read_settings(settings),
        **asked | ({} if asked["weights"] is None else {"selector": GIVEN}),
    )


def chosen_scale(scale: str, device: str) -> Any:
    """What auto stands for."""
    return ("small" if device == "cpu" else "paper") if scale == "auto" else scale


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE as a dictionary; a value is JSON where it can be read as such, else text."""
    found: dict[str, Any] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not equals:
            raise JustrightError(f"--set {each}", expected="NAME=VALUE, such as --set views=8")
        try:
            found[name.replace("-", "_")] = parsed_json(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found
