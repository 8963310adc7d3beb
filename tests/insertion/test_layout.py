import pytest
import torch

from depthpde.insertion.layout import FieldLayout

SIZES = {"b": 2, "l": 6, "c": 5, "h": 3, "w": 4}


@pytest.mark.parametrize("layout", FieldLayout)
def test_a_field_there_and_back_is_the_tensor_itself(layout):
    u = torch.randn([SIZES[letter] for letter in layout.value])
    field = layout.field(u)
    assert field.shape == (2, 12 if layout.grid(u) else 6, 5)
    assert torch.equal(layout.back(field, u), u)
    assert layout.features(u) == 5


def test_the_rows_of_an_image_follow_each_other():
    u = torch.arange(12.0).view(1, 1, 3, 4)
    assert FieldLayout.BCHW.field(u)[0, :, 0].tolist() == list(range(12))
    assert FieldLayout.BCHW.grid(u) == (3, 4)


def test_tensors_of_fewer_axes_are_taken_as_they_are():
    one, flat = torch.randn(6, 5), torch.randn(2, 12, 5)
    assert torch.equal(FieldLayout.BLC.back(FieldLayout.BLC.field(one), one), one)
    assert torch.equal(FieldLayout.BHWC.field(flat), flat)
    assert torch.equal(FieldLayout.BHWC.back(flat, flat), flat)


def test_refuses_a_tensor_of_several_streams():
    with pytest.raises(ValueError, match=r"got 'blc' for \[4, 2, 6, 5\].*family="):
        FieldLayout.BLC.field(torch.zeros(4, 2, 6, 5))
