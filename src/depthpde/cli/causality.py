"""``depthpde causality``: does the future leak into the past, and through which module?"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

SUMMARY = "change the future of a model's input and name the module through which its past moves"
EXAMPLES = """examples:
  depthpde causality --hf models/my-gpt2
  depthpde causality --python mymodels:build --length 64
  depthpde causality --hf models/my-gpt2 --json

--python names a function without arguments that returns the model, or (model, inputs).
exit code: 0 if no site sees its future, 1 if one does, 2 for wrong input
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--hf", metavar="PATH", type=Path, help="folder of a Hugging Face model (save_pretrained)"
    )
    source.add_argument(
        "--python", metavar="MODULE:FUNCTION", help="function that builds the model"
    )
    parser.add_argument(
        "--length", type=int, default=16, help="tokens of the random input (default: 16)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random input (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Check the model and print the verdict.

    Returns:
        0 if no site sees its future, 1 if one does.
    """
    from depthpde.errors import check_positive
    from depthpde.insertion.causality import check_causality

    length = check_positive("--length", arguments.length)
    if arguments.hf is not None:
        model, inputs = _from_huggingface(arguments.hf), None
    else:
        model, inputs = _from_python(arguments.python)
    if inputs is None:
        inputs = _random_tokens(model, length, arguments.seed)
    report = check_causality(model, inputs, seed=arguments.seed)
    print(json.dumps(report.to_dict()) if arguments.json else report)
    return 1 if report.leaks else 0


def _from_huggingface(folder: Path) -> nn.Module:
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"`--hf` must be a folder with config.json, got {str(folder)!r}; "
            "make one with model.save_pretrained(folder)"
        )
    try:
        transformers: Any = import_module("transformers")
    except ImportError as error:
        raise ValueError("`--hf` needs transformers; pip install 'depthpde[hf]'") from error
    transformers.utils.logging.disable_progress_bar()
    model: nn.Module = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
    return model


def _from_python(name: str) -> tuple[nn.Module, Any]:
    from torch import nn

    module_name, _, function_name = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        build = getattr(import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"`--python` must name a function as module:function, got {name!r}: {error}"
        ) from error
    finally:
        sys.path.pop(0)
    made = build()
    model, inputs = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"`--python` must name a function that returns a torch.nn.Module or (model, inputs), "
            f"got {type(model).__name__}"
        )
    return model, inputs


def _random_tokens(model: nn.Module, length: int, seed: int) -> Tensor:
    import torch
    from torch import nn

    from depthpde import seeds

    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    if not tables:
        raise ValueError(
            "the model must embed tokens, got one without nn.Embedding; "
            "use --python with a function that returns (model, inputs)"
        )
    words = seeds.generator(seed, "tokens")
    return torch.randint(0, tables[0], (2, length), generator=words)
