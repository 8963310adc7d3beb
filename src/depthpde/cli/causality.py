"""``depthpde causality``: does the future leak into the past, and through which module?"""

from __future__ import annotations

import argparse
import json

from depthpde.cli.subject import (
    add_options,
    from_huggingface,
    from_python,
    most_sites,
    random_tokens,
)

SUMMARY = "change the future of a model's input and name the module through which its past moves"
EXAMPLES = """examples:
  depthpde causality --hf models/my-gpt2
  depthpde causality --python mymodels:build --length 64
  depthpde causality --hf models/my-gpt2 --json

--python names a function without arguments that returns the model, or (model, inputs).
A model that is not meant to be causal, such as an encoder, is named as one; --causal makes it a
leak. exit code: 0 if no site sees its future or the model is not meant to be causal, 1 if one does,
2 for wrong input, 3 if the model fails
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    add_options(parser)
    parser.add_argument(
        "--length", type=int, default=16, help="tokens of the random input (default: 16)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random input (default: 0)")
    parser.add_argument(
        "--causal", action="store_true", help="the model must be causal, whatever it says of itself"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Check the model and print the verdict.

    Returns:
        0 if no site sees its future, or the model is not meant to be causal; 1 if one does.
    """
    from depthpde.errors import check_positive
    from depthpde.isolation.causality import check_causality
    from depthpde.isolation.subject import declared_causal

    length = check_positive("--length", arguments.length)
    if arguments.hf is not None:
        model, inputs = from_huggingface(arguments.hf, trust=arguments.trust_remote_code), None
    else:
        model, inputs = from_python(arguments.python)
    if inputs is None:
        inputs = random_tokens(model, min(length, most_sites(model) or length), arguments.seed)
    report = check_causality(model, inputs, seed=arguments.seed)
    meant = arguments.causal or declared_causal(model) is True
    if arguments.json:
        print(json.dumps(report.to_dict() | {"meant_causal": meant}))
    elif report.leaks and not meant:
        print(
            "not causal, and not meant to be: its sites see each other, first through "
            f"{report.leak.module}; --causal if it must be"  # type: ignore[union-attr]
        )
    else:
        print(report)
    return 1 if report.leaks and meant else 0
