from __future__ import annotations

import pytest

from justright.errors import JustrightError
from justright.losses import (
    ContrastiveSettings,
    DistillationLoss,
    SelfContrastiveLoss,
    SimGCDSettings,
    WeightedCrossEntropy,
    WeightedSupConLoss,
)


def test_single_losses_have_the_defaults_of_the_settings():
    settings = SimGCDSettings()
    assert SelfContrastiveLoss().temperature_unsup == settings.temperature_unsup == 1.0
    assert WeightedSupConLoss().temperature_sup == settings.temperature_sup == 0.07
    assert WeightedCrossEntropy().temperature_student == settings.temperature_student == 0.1
    assert DistillationLoss().entropy_scale == settings.entropy_scale == 2.0
    assert ContrastiveSettings().supervised_share == settings.supervised_share == 0.35


@pytest.mark.parametrize("wrong", [{"temperature_sup": 0.0}, {"supervised_share": 1.5}, {"entropy_scale": -1.0}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(JustrightError, match="Expected: "):
        SimGCDSettings(**wrong)
