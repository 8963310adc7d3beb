"""Ten problems of a newcomer, each solved by what the site alone says: its command, as written.

A newcomer has files of their own (`mine.py`, `my_module.py`, a model's folder) and the page. What
is typed is read from the page below the heading, never written here.
"""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass

import pytest

from depthpde.cli.main import main
from recipes import ROOT, read_recipes, run_recipe

MODEL = """
import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.sites = nn.Embedding(30, 16), nn.Embedding(12, 16)
        settings = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        block = nn.TransformerEncoderLayer(16, 2, 32, **settings)
        self.ahead = 0
        self.encoder = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 30)

    def forward(self, input_ids):
        u = self.tokens(input_ids) + self.sites(torch.arange(input_ids.shape[1]))
        n = input_ids.shape[1]
        mask = torch.full((n, n), float("-inf")).triu(1 + self.ahead)
        return self.head(self.encoder(u, mask=mask))

def model():
    made = Net().eval()
    with torch.no_grad():
        CHANGE
    return made, {"input_ids": torch.randint(0, 30, (4, 10))}
"""
"""A small decoder of somebody's own, and one line that breaks it."""


@dataclass(frozen=True)
class Problem:
    """What goes wrong, and where the site is read."""

    page: str
    heading: str
    says: str
    """What the answer must contain."""
    change: str = "pass"
    code: int = 1
    """The exit code: 1 where something is ill."""


PROBLEMS = {
    "nan": Problem(
        "troubleshooting", "My loss is NaN", r"numbers.*encoder\.layers\.1",
        "made.encoder.layers[1].linear1.weight[0, 0] = float('nan')",
    ),
    "does not fall": Problem(
        "troubleshooting", "My loss does not fall", "what learns",
        "made.encoder.layers[0].self_attn.in_proj_weight.requires_grad_(False)",
    ),
    "mask": Problem(
        "troubleshooting", "It got worse after I changed the mask", r"future.*✗",
        "made.ahead = 1",
    ),
    "batch": Problem(
        "troubleshooting", "Results depend on the batch", r"neighbour",
        "made.head.register_forward_hook(lambda m, a, u: u - u.mean(0, keepdim=True))",
    ),
    "order": Problem(
        "troubleshooting", "It ignores the order of words", "positions",
        "made.sites.weight.zero_()",
    ),
    "does nothing": Problem(
        "troubleshooting", "Which part does nothing?", "layers",
        "[each.zero_() for each in made.encoder.layers[1].linear2.parameters()]",
    ),
}  # fmt: skip


def below(page: str, heading: str) -> str:
    """Return what stands on a page below a heading."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, flags=re.M | re.DOTALL)
    assert found, f"{page} has no heading {heading!r}"
    return found.group(1)


def first_command(page: str, heading: str) -> list[str]:
    """Return the words after `depthpde` of the first command below a heading."""
    found = re.search(r"^(?:    )?depthpde (.+)$", below(page, heading), flags=re.M)
    assert found, f"{page}: {heading} has no command"
    return shlex.split(found.group(1), comments=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, in which a newcomer works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("mine", "my_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    for name in ("mine", "my_module"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_a_broken_model_is_named_by_the_command_of_the_page(name, here, capsys):
    problem = PROBLEMS[name]
    (here / "mine.py").write_text(MODEL.replace("CHANGE", problem.change))
    code = main(first_command(problem.page, problem.heading))
    output = capsys.readouterr().out
    assert re.search(problem.says, output), output
    assert code == problem.code, output


def test_a_hugging_face_folder_is_looked_at(here, capsys):
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    config = transformers.BertConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=40,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(here / "FOLDER")
    assert main(first_command("troubleshooting", "Can I quantize it?")) in (0, 1)
    assert "massive activations" in capsys.readouterr().out
    assert (here / "out" / "doctor.html").is_file()


def test_own_data_are_trained_on_from_the_terminal(here, capsys):
    (here / "my_module.py").write_text(
        "import numpy as np\nimport depthpde as dp\n\n"
        "def make_task():\n"
        "    y = np.arange(60) % 2\n"
        "    x = np.random.default_rng(0).normal(size=(60, 12)) + y[:, None]\n"
        "    return dp.Task.from_arrays('mine', x, y)\n"
    )
    (command,) = set(
        re.findall(r"`depthpde (train my_module:make_task)`", below("data", "Your own data"))
    )
    assert main([*command.split(), "--print_config"]) == 0
    assert '"source": "my_module:make_task"' in capsys.readouterr().out
    assert main([*command.split(), "--updates", "20"]) == 0
    assert "test" in capsys.readouterr().out


def test_a_spike_is_watched_for_in_ones_own_loop(here, capsys):
    (recipe,) = [each for each in read_recipes("docs/index.md") if each.title == "My loss spikes"]
    names = run_recipe(recipe, here)
    assert names["doctor"].diagnosis is not None
    assert "healthy" in capsys.readouterr().out


def test_diffusion_is_tried_in_ones_own_model(here):
    title = "I want to try diffusion in my model"
    (recipe,) = [each for each in read_recipes("docs/index.md") if each.title == title]
    assert "inserted" in run_recipe(recipe, here)


def test_there_are_ten():
    assert len(PROBLEMS) + 4 >= 10
