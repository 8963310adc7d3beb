import json

import pytest
import torch
from torch import nn

import depthpde as dp
from depthpde.isolation.answer import Isolation
from depthpde.isolation.audit import audit
from insertion.test_untouched import BATCHES, ERRORS, failing, model_of, snapshot
from insertion.zoo import tokens
from isolation.faults import CAUSAL, batch, healthy
from isolation.parts import LooksAhead, Plain


def leaking():
    torch.manual_seed(0)
    model = Plain()
    model.h[0].mlp = LooksAhead(model.h[0].mlp)
    return model.eval()


def ids(rows=3, length=10):
    return torch.randint(5, 29, (rows, length), generator=torch.Generator().manual_seed(1))


def test_the_table_names_question_verdict_module_and_size():
    text = str(audit(leaking(), ids(), causal=True))
    assert text.startswith("Plain: 4 leaks")
    line = next(each for each in text.splitlines() if each.startswith("  future"))
    assert "✗ leak" in line
    assert "h.0.mlp (LooksAhead)" in line
    assert "in float64" in line


def test_plain_values_are_json():
    printed = json.loads(json.dumps(audit(leaking(), ids(), causal=True).to_dict()))
    assert "future" in printed["leaks"]
    assert [each["name"] for each in printed["answers"]] == [
        "future", "padding", "packing", "cache", "neighbour", "memory",
    ]  # fmt: skip


def test_the_page_holds_every_answer_and_no_script(tmp_path):
    report = audit(leaking(), ids(), causal=True)
    page = report.save(tmp_path / "made" / "audit.html").read_text()
    for word in ("4 leaks", "h.0.mlp (LooksAhead)", "does a later token change", "✓ isolated"):
        assert word in page
    assert "<script" not in page


def test_what_nobody_declares_causal_leaks_by_design():
    answer = audit(healthy("bert"), ids(), questions=["future"])["future"]
    assert answer.verdict is Isolation.BY_DESIGN
    assert audit(healthy("bert"), ids(), questions=["future"], causal=True).leaks


def test_a_question_that_does_not_apply_says_why():
    report = audit(healthy("vit"), batch("vit"))
    for name in ("future", "padding", "packing", "cache"):
        assert report[name].verdict is Isolation.NOT_APPLICABLE
        assert "no sequence of tokens" in report[name].detail
    assert "takes no cache" in audit(healthy("bert"), ids())["cache"].detail
    alone = audit(nn.Sequential(nn.Embedding(29, 4), nn.Linear(4, 4)), ids())
    assert "no mask of padding" in alone["padding"].detail
    assert "neither document numbers" in alone["packing"].detail
    assert "causal=False" in audit(healthy("gpt2"), ids(), causal=False)["future"].detail


def test_rounding_is_told_from_a_leak():
    answer = audit(healthy("t5"), batch("t5"), questions=["cache"])["cache"]
    assert answer.rounding
    assert answer.size > 1e-9 > answer.size_float64


def test_layers_take_part_away_from_the_identity():
    model = healthy("plain")
    model.ln_f = nn.Sequential(model.ln_f, dp.Diffusion(16, initial_ratio=0.0))
    assert not model.ln_f[1].ratio.detach().any()
    assert audit(model, ids(), questions=["future"], causal=True)["future"].module == "ln_f.1"
    model.ln_f[1] = dp.Diffusion(16, causal=True)
    assert not audit(model, ids(), questions=["future"], causal=True).leaks


def test_one_row_gets_a_neighbour_and_padding_is_taken_off():
    mask = torch.ones(3, 10, dtype=torch.long)
    mask[1, 7:] = 0
    report = audit(healthy("llama"), {"input_ids": ids(), "attention_mask": mask})
    assert not report.leaks
    assert audit(healthy("llama"), ids(rows=1))["neighbour"].trials == 3


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (ids(length=3), {}, "at least 4 real sites"),
        (3, {}, "must be a tensor, a tuple or a mapping"),
        (torch.zeros(3), {}, "no tensor with two axes"),
        (ids(), {"questions": ["futur"]}, "did you mean 'future'"),
        (ids(), {"segments": "segment"}, "did you mean 'segments'"),
    ],
)
def test_what_cannot_be_audited_is_one_sentence(given, options, message):
    with pytest.raises(ValueError, match=message):
        audit(Plain(), given, **options)


@pytest.mark.parametrize("family", ["plain", "bert", "bart"])
def test_the_model_is_left_as_it_was(family):
    model = healthy(family).train()
    next(model.children()).eval()
    before = snapshot(model)
    audit(model, batch(family), causal=CAUSAL.get(family))
    assert snapshot(model) == before


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_model_that_fails_inside_is_left_as_it_was(error):
    model = failing("gpt2", error)
    before = snapshot(model)
    with pytest.raises((type(error), ValueError)):
        audit(model, {"input_ids": tokens()})
    assert snapshot(model) == before


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_the_model_cannot_take_is_one_sentence(name):
    model = model_of("bert")
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"^`batch` must [^\n]*$"):
        audit(model, BATCHES[name])
    assert snapshot(model) == before


class FailsInTraining(nn.Linear):
    def forward(self, u):
        if self.training:
            raise RuntimeError("no training here")
        return super().forward(u)


def test_train_mode_that_cannot_be_run_is_a_note():
    model = nn.Sequential(nn.Embedding(29, 4), FailsInTraining(4, 4))
    answer = audit(model, ids(), questions=["memory"])["memory"]
    assert answer.verdict is Isolation.ISOLATED
    assert "no training here" in answer.notes[0]


def test_a_model_that_gives_no_number_is_not_called_isolated():
    model = torch.nn.Sequential(
        torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 9)
    )
    with torch.no_grad():
        model[1].weight[:] = torch.nan
    with pytest.raises(ValueError, match=r"got NaN at every feature of a site from 1 \(Linear\)"):
        audit(model, torch.randint(9, (2, 6)))


class Codes(torch.nn.Module):
    """A word and its codes at each site, as speech models have them; reads one site ahead."""

    def __init__(self, ahead):
        super().__init__()
        self.table, self.ahead = torch.nn.Embedding(20, 6), ahead
        self.head = torch.nn.Linear(6, 20)

    def forward(self, *ids):
        u = self.table(ids[0]).sum(dim=2)
        return self.head(u.roll(-self.ahead, dims=1) + u)


@pytest.mark.parametrize("ahead", [0, 1])
def test_tokens_with_several_codes_a_site_are_changed_whatever_the_argument_is_called(ahead):
    ids = torch.randint(20, (2, 6, 3), generator=torch.Generator().manual_seed(0))
    report = audit(Codes(ahead), ids, causal=True, questions=("future", "neighbour"))
    assert [each.name for each in report.leaks] == ["future"] * ahead


def test_no_axis_is_guessed_where_length_width_heads_batch_and_vocabulary_are_equal():
    import transformers

    size = 8
    settings = {"n_embd": size, "n_head": size, "n_layer": 2, "vocab_size": size,
                "n_positions": 32, "bos_token_id": 1, "eos_token_id": None}  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings))
    square = torch.randint(0, size, (size, size), generator=torch.Generator().manual_seed(3))
    dp.insert(model, "after_ffn")
    report = audit(model, square, causal=True)
    assert not report.leaks, report
    assert dp.diagnose(model, square, baseline=False).trajectory.causal is True
    model.transformer.h[1].mlp = LooksAhead(model.transformer.h[1].mlp)
    assert audit(model, square, questions=("future",)).leaks[0].module == "transformer.h.1.mlp"


def test_a_tolerance_needs_no_float64_and_is_checked():
    model = dp.LanguageModel(dp.ModelConfig(dim=16, blocks=2, vocabulary=9, length=12)).eval()
    ids = torch.randint(9, (2, 12), generator=torch.Generator().manual_seed(0))
    exact, near = (
        dp.audit(model, ids, questions=["cache"], tolerance=each).answers[0] for each in (0.0, 1e-5)
    )
    assert (exact.verdict, near.verdict) == (Isolation.ISOLATED, Isolation.ISOLATED)
    assert near.size_float64 is None
    with pytest.raises(ValueError, match=r"`tolerance` must lie in \[0, 1\], got 2"):
        dp.audit(model, ids, tolerance=2.0)


def test_decoding_runs_once_for_all_its_steps():
    model, decoded = healthy("gpt2"), []

    def count(module, args, named):
        if named.get("past_key_values") is not None:
            decoded.append(module.dtype)

    model.register_forward_pre_hook(count, with_kwargs=True)
    (answer,) = audit(model, ids(), questions=["cache"]).answers
    assert answer.trials == 4, "three single tokens and a chunk"
    assert answer.verdict is Isolation.ISOLATED
    assert decoded.count(torch.float32) == 3 + 1, "each token once, and the chunk"
    # and once more in float64 those whose bits differ on this processor
    assert decoded.count(torch.float64) <= 3 + 1


def test_a_wrapper_that_gives_a_loss_names_the_part_that_takes_the_cache():
    from x_transformers import AutoregressiveWrapper

    report = audit(AutoregressiveWrapper(healthy("x")), ids())
    assert not report.leaks, report
    assert "audit its `net`" in report["cache"].detail


def test_a_model_that_says_it_cannot_be_decoded_with_a_cache_is_not_tried():
    model = healthy("x")
    model.can_cache_kv = False
    assert "can_cache_kv" in audit(model, ids(), questions=["cache"])["cache"].detail
