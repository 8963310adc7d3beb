from types import SimpleNamespace

from torch import nn

from depthpde.insertion.example import LENGTH, ROWS, examples


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4)

    def forward(self, ids):
        return self.table(ids)


class Sound(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.config = SimpleNamespace(num_mel_bins=7, max_source_positions=5)
        self.first = nn.Conv1d(7, 3, 3)
        self.forward = {"input_features": self.spectrum, "input_values": self.wave}[name]

    def spectrum(self, input_features):
        return self.first(input_features)

    def wave(self, input_values):
        return input_values


def first(model):
    return next(iter(examples(model)))


def test_tokens_lie_inside_the_smallest_table_and_differ():
    given = first(Words())["ids"]
    assert given.shape == (ROWS, LENGTH)
    assert given.max() < 20
    assert len(given.unique()) == ROWS * LENGTH


def test_an_image_has_the_channels_of_the_first_convolution():
    model = nn.Conv2d(5, 3, 3)
    assert first(model)["input"].shape == (ROWS, 5, 64, 64)


def test_sound_as_bands_or_as_a_wave():
    assert first(Sound("input_features"))["input_features"].shape == (ROWS, 7, 10)
    assert first(Sound("input_values"))["input_values"].ndim == 2


def test_a_decoder_gets_its_own_tokens_and_no_cache():
    model = Words()
    model.config = SimpleNamespace(is_encoder_decoder=True)

    def forward(input_ids, decoder_input_ids=None, use_cache=True):
        return model.table(input_ids)

    model.forward = forward
    assert set(first(model)) == {"input_ids", "decoder_input_ids", "use_cache"}
    assert first(model)["use_cache"] is False


def test_a_field_is_as_wide_as_the_first_linear_map():
    assert first(nn.Linear(9, 2))["input"].shape == (ROWS, LENGTH, 9)


def test_a_model_without_weights_has_no_example():
    assert list(examples(nn.Identity())) == []
