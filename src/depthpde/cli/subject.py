"""A model named on the command line, and what to feed it: shared by the verbs that look at models.

--hf FOLDER · --python MODULE:FUNCTION · --checkpoint RUN
"""

from __future__ import annotations

import argparse
import inspect
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthpde.errors import import_optional, nearest
from depthpde.files import read_json, read_plain

if TYPE_CHECKING:
    from torch import Tensor, nn

SENTENCES = (
    "Depth is time.",
    "A field diffuses along the sequence of its tokens, and stops at the wall of padding.",
    "The quick brown fox jumps over the lazy dog near the bank of the river.",
    "Attention mixes tokens by content; the feed-forward part acts on each of them alone.",
    "It rained all night, and in the morning the garden smelled of wet earth.",
    "Stock prices fell sharply after the central bank raised its rates again.",
    "She opened the letter, read it twice, and put it back into the drawer.",
    "Water boils at a lower temperature in the mountains than at the sea.",
)
"""What a model that brings its tokenizer is fed by default."""
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
"""What other libraries call the number of sites that a model has a place for."""
VOCABULARIES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
)
"""Files of which a tokenizer has at least one."""


@dataclass(frozen=True)
class Subject:
    """A model and, where they are known, what to feed it and what it should say."""

    model: nn.Module
    inputs: Any = None
    labels: Tensor | None = None
    note: str = ""
    """What a reader must know of the inputs."""


def add_options(
    parser: argparse.ArgumentParser, *, checkpoint: bool = False
) -> argparse._MutuallyExclusiveGroup:
    """Add the options that name a model; return the group of which one must be given.

    Args:
        parser: Of the verb.
        checkpoint: Whether a run's folder may be named too.
    """
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--hf", metavar="PATH", type=Path, help="folder of a Hugging Face model (save_pretrained)"
    )
    if checkpoint:
        source.add_argument(
            "--checkpoint",
            metavar="RUN",
            type=Path,
            help="folder of a run, or of one of our models (save_pretrained)",
        )
    source.add_argument(
        "--python",
        metavar="MODULE:FUNCTION",
        help="function that builds the model; file.py:function as well",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="let --hf run Python that lies in the model's folder: it can do whatever you can",
    )
    return source


def from_huggingface(folder: Path, *, headed: bool = False, trust: bool = False) -> nn.Module:
    """Load a model that Hugging Face's `save_pretrained` wrote.

    Args:
        folder: Where it lies.
        headed: Load the class that was saved, with its head; else the bare stack.
        trust: Run Python code that the folder brings; without it such a model is refused, and
            nobody is asked.
    """
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"`--hf` must be a folder with config.json, got {str(folder)!r}; "
            "make one with model.save_pretrained(folder)"
        )
    from safetensors import SafetensorError

    transformers = _transformers()
    transformers.utils.logging.disable_progress_bar()
    try:
        names = _read_json(folder / "config.json").get("architectures") if headed else None
        kind = getattr(transformers, (names or ["AutoModel"])[0], transformers.AutoModel)
        if trust:
            print(f"warning: code in {folder} is run as you", file=sys.stderr)
        model: nn.Module = kind.from_pretrained(
            folder, local_files_only=True, trust_remote_code=trust
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ValueError(
            f"`--hf` must be a folder whose model transformers can load, got {str(folder)!r}: "
            f"{error}; save it again with model.save_pretrained(folder)"
        ) from error
    return model.eval()


def from_python(name: str) -> tuple[nn.Module, Any]:
    """Call a function that builds a model; give the model and, if it says so, its inputs."""
    from torch import nn

    module_name, _, function_name = name.partition(":")
    wanted = f"`--python` must name a function as module:function or file.py:function, got {name!r}"
    relative = module_name.startswith(".") and not module_name.endswith(".py")
    if relative or not function_name.isidentifier():
        raise ValueError(f"{wanted}; name the function that builds the model after a colon")
    folder = Path.cwd()
    if module_name.endswith(".py"):  # a file: imported from where it lies
        file = Path(module_name)
        folder, module_name = file.resolve().parent, file.stem
    sys.path.insert(0, str(folder))
    try:
        module = import_module(module_name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{wanted}: {error}") from error
    finally:
        sys.path.pop(0)
    if not callable(build := getattr(module, function_name, None)):
        near = nearest(
            function_name, (name for name in vars(module) if callable(getattr(module, name)))
        )
        hint = "" if near is None else f"; did you mean {near!r}?"
        raise ValueError(f"{wanted}: {module_name} has no function {function_name!r}{hint}")
    try:
        inspect.signature(build).bind()
    except TypeError as error:
        raise ValueError(
            f"`--python` must name a function without arguments, got {name!r}: {error}; wrap it in "
            "one that has none"
        ) from error
    made = build()
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"`--python` must name a function that returns a torch.nn.Module or (model, inputs), "
            f"got {type(model).__name__}"
        )
    return model, inputs


def from_checkpoint(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """Load one of our models from a run's folder or from its own; give its run's config too."""
    from depthpde.models.classifier import Classifier
    from depthpde.models.language import LanguageModel
    from depthpde.models.vision import VisionTransformer
    from depthpde.simulator.learned import LanguageSimulator, Simulator

    inside = folder / "model" if (folder / "model").is_dir() else folder
    values = _read_json(inside / "config.json")
    ours = (Classifier, LanguageModel, VisionTransformer, Simulator, LanguageSimulator)
    kinds = {each.__name__: each for each in ours}
    if values.get("model") not in kinds:
        known = ", ".join(kinds)
        raise ValueError(
            f"`--checkpoint` must be a run's folder (with model/) or a folder that save_pretrained "
            f"of one of our models ({known}) wrote, got {str(folder)!r}; use --hf for a Hugging "
            "Face model"
        )
    run = _read_json(folder / "config.json").get("config", {}) if inside != folder else {}
    return kinds[values["model"]].from_pretrained(inside), run


def sentences(folder: Path, text: Path | None) -> dict[str, Tensor] | None:
    """Give sentences as a model's own tokenizer writes them; None if it brings none.

    Args:
        folder: Of the Hugging Face model.
        text: A file with one sequence a line, instead of our own sentences.
    """
    lines = list(SENTENCES)
    if text is not None:
        lines = [line for line in read_plain(text).decode("utf-8").splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"`--text` must hold at least one line of text, got {str(text)!r} empty")
    # Without a vocabulary the library would build a tokenizer that knows no word.
    if not any((folder / name).is_file() for name in VOCABULARIES):
        if text is not None:
            raise ValueError(
                f"`--text` needs a tokenizer beside the model, got none in {str(folder)!r}; "
                "save one with tokenizer.save_pretrained(folder)"
            )
        return None
    tokenizer = _transformers().AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return dict(tokenizer(lines, padding=True, truncation=True, return_tensors="pt"))


def most_sites(model: nn.Module) -> int | None:
    """Return how many sites a model has a place for, as its config says; None if it does not."""
    config = getattr(model, "config", None)
    named = (getattr(config, name, None) for name in ("length", *POSITIONS))
    return next((each for each in named if isinstance(each, int) and each > 0), None)


def random_tokens(model: nn.Module, length: int, seed: int, *, batch: int = 2) -> Tensor:
    """Draw tokens for a model that embeds them, or grey levels for one of ours that maps them.

    Args:
        model: The model.
        length: Tokens of a sequence.
        seed: Of chance.
        batch: Number of sequences.
    """
    import torch
    from torch import nn

    from depthpde import seeds

    config = getattr(model, "config", None)
    words: Any = getattr(config, "vocabulary", None) or getattr(config, "vocab_size", None)
    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    if words is None and not tables:
        raise ValueError(
            "the model must embed tokens, got one without nn.Embedding; "
            "use --python with a function that returns (model, inputs)"
        )
    chance = seeds.generator(seed, "tokens")
    return torch.randint(0, words or tables[0], (batch, length), generator=chance)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = read_json(file)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"`--checkpoint` must be a folder with config.json, got {str(file.parent)!r}; give a "
            "run's folder, or one that save_pretrained wrote"
        ) from None
    except ValueError as error:
        raise ValueError(f"{file} must be JSON, got {error}; it was not written by us") from error
    return values if isinstance(values, dict) else {}


def _transformers() -> Any:
    return import_optional("transformers", "`--hf`", "hf")
