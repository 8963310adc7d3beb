"""``depthpde audit``: does anything in a model reach what it must not?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthpde.cli.subject import (
    add_options,
    from_checkpoint,
    from_huggingface,
    from_python,
    most_sites,
    random_tokens,
)

if TYPE_CHECKING:
    from torch import nn

SUMMARY = "ask whether future, padding, packing, cache, neighbours or memory reach a model's output"
EXAMPLES = """examples:
  depthpde audit --hf models/my-gpt2 --causal
  depthpde audit --python mymodels:build --json > audit.json

--python names a function without arguments that returns the model, or (model, inputs).
--hf loads the class that the folder's config.json names, with its head.
exit code: 0 if nothing leaks, 1 if something does, 2 for wrong input, 3 if the model fails
"""
PADDING = 4
"""Sites kept free for the trials that add padding."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_options(parser, checkpoint=True)
    parser.add_argument(
        "--length", type=int, default=12, help="tokens of the random input (default: 12)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random input (default: 0)")
    parser.add_argument(
        "--causal",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether no site may see its future (default: what the model says of itself)",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page there")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Audit the model and print the table.

    Returns:
        0 if nothing leaks, 1 if something does.
    """
    from depthpde.errors import check_positive
    from depthpde.isolation.audit import audit

    length = check_positive("--length", arguments.length)
    if arguments.out is not None and arguments.out.is_dir():
        raise ValueError(f"`--out` must be a file for the page, got the folder {arguments.out}")
    model, inputs = _subject(arguments)
    if inputs is None:
        inputs = _draw(model, length, arguments.seed)
    report = audit(model, inputs, causal=arguments.causal)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if arguments.json else report)
    if arguments.out is not None:
        page = report.save(arguments.out)
        print(f"page {page}", file=sys.stderr if arguments.json else sys.stdout)
    return 1 if report.leaks else 0


def _subject(arguments: argparse.Namespace) -> tuple[nn.Module, Any]:
    if arguments.hf is not None:
        return from_huggingface(arguments.hf, headed=True, trust=arguments.trust_remote_code), None
    if arguments.checkpoint is not None:
        return from_checkpoint(arguments.checkpoint)[0], None
    return from_python(arguments.python)


def _draw(model: nn.Module, length: int, seed: int) -> Any:
    """Draw tokens that leave room for padding; for an encoder-decoder those of the decoder too."""
    most = most_sites(model)
    if most is not None:
        length = min(length, max(1, most - PADDING))
    tokens = random_tokens(model, length, seed)
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) is True:
        return {"input_ids": tokens, "decoder_input_ids": random_tokens(model, length, seed + 1)}
    return tokens
