"""The parameters of a dataclass as scikit-learn's tools expect them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

from justright.utils.errors import JustrightError, did_you_mean

E = TypeVar("E", bound="Estimator")


@dataclass(repr=False, eq=False)
class Estimator:
    """A dataclass whose fields are its parameters. `fit` never changes them; fitted attributes end in `_`.

    `sklearn.base.clone` and parameter searches work with it, without an import of scikit-learn.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is for scikit-learn, no parameter has parameters of its own."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self: E, **params: Any) -> E:
        """Change parameters; returns the estimator itself."""
        names = [field.name for field in fields(self)]
        for name, value in params.items():
            if name not in names:
                raise JustrightError(
                    f"{type(self).__name__} has no parameter {name!r}",
                    expected=f"one of {', '.join(names)}",
                    advice=did_you_mean(name, names),
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The parameters that differ from their defaults."""
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not field.default and repr(value) != repr(field.default):
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"
