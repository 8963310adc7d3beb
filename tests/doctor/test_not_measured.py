"""A missing measurement is a value with a reason, from the check to the printed line."""

import torch

import depthpde as dp
from depthpde.doctor.conditions.table import symptoms


def test_a_diagnosis_without_labels_prints_why_gradients_are_missing():
    model = dp.Classifier(dp.ModelConfig(dim=16, vocabulary=9, length=12, classes=3))
    output = dp.diagnose(model, torch.randint(9, (4, 12)), baseline=False)
    found = symptoms(output.trajectory)["vanishing gradients"]
    assert isinstance(found, dp.NotMeasured)
    assert f"not measured: gradients ({found.reason})" in str(output)


def test_the_reason_of_a_fact_is_in_the_json():
    model = dp.VisionTransformer(dp.ModelConfig(dim=16, grid=(3, 3), patch=4, classes=3))
    output = dp.diagnose(model, torch.rand(4, 1, 12, 12), baseline=False)
    assert isinstance(output.trajectory.facts["positions"], dp.NotMeasured)
    plain = output.to_dict()["trajectory"]["facts"]["positions"]
    assert plain == {"not measured": output.trajectory.facts["positions"].reason}
    assert "tokens" in plain["not measured"]
