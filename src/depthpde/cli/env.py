"""``depthpde env``: what runs here, and whether it computes what it should."""

from __future__ import annotations

import argparse
import json
from typing import Any

SUMMARY = "versions, kernels in use, and a self-test of a few seconds"
EXAMPLES = """examples:
  depthpde env
  depthpde env --json > environment.json
"""
OPTIONAL = ("triton", "transformers", "timm", "ray", "submitit", "tensorboard", "trackio")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--json", action="store_true", help="print plain JSON")


def run(arguments: argparse.Namespace) -> int:
    """Describe the environment and test every path that can run here.

    Returns:
        0 if every path agrees with the reference, 1 if one does not.
    """
    from importlib.util import find_spec

    from depthpde.runs.environment import describe_environment

    environment = describe_environment()
    environment["optional"] = {name: find_spec(name) is not None for name in OPTIONAL}
    environment["paths"] = test_paths()
    if arguments.json:
        print(json.dumps(environment, indent=1))
    else:
        _print(environment)
    return 0 if all(each["agrees"] is not False for each in environment["paths"].values()) else 1


def test_paths() -> dict[str, dict[str, Any]]:
    """Compare every path with the dense reference: value and both gradients, in float64.

    A path that does not exist on this machine says why and counts as neither right nor wrong.
    """
    import torch

    from depthpde.operators.diffusion.dispatch import Method, diffuse
    from depthpde.operators.stability import Scheme

    generator = torch.Generator().manual_seed(0)
    u = torch.randn(3, 37, 8, dtype=torch.float64, generator=generator)
    ratio = 0.25 * torch.rand(8, dtype=torch.float64, generator=generator)
    mask = torch.arange(37) < torch.tensor([[37], [20], [1]])

    schemes = {Method.IMPLICIT: Scheme.BACKWARD_EULER, Method.SPECTRAL: Scheme.EXACT}

    def through(method: Method, scheme: Scheme) -> list[torch.Tensor]:
        leaves = (u.clone().requires_grad_(), ratio.clone().requires_grad_())
        out = diffuse(*leaves, steps=3, scheme=scheme, valid_mask=mask, method=method)
        return [out.detach(), *torch.autograd.grad((out**2).sum(), leaves)]

    found: dict[str, dict[str, Any]] = {}
    for method in Method:
        scheme = schemes.get(method, Scheme.EXPLICIT)
        if method is Method.REFERENCE:
            continue
        try:
            got = through(method, scheme)
        except (ValueError, RuntimeError, ImportError) as refusal:
            found[method.value] = {"agrees": None, "why": str(refusal).splitlines()[0]}
            continue
        wanted = through(Method.REFERENCE, scheme)
        error = max(
            float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, wanted, strict=True)
        )
        found[method.value] = {"agrees": error < 1e-12, "relative_error": error}
    return found


def _print(environment: dict[str, Any]) -> None:
    versions = " · ".join(f"{name} {each}" for name, each in environment["versions"].items())
    machine = environment["machine"]
    memory = machine["memory_bytes"]
    size = "" if memory is None else f", {memory / 2**30:.0f} GiB"
    print(versions)
    print(f"{machine['platform']}, {machine['cpu']}, {machine['cores']} cores{size}")
    print(f"{environment['threads']} torch threads, device {environment['device']}")
    there = [name for name, each in environment["optional"].items() if each]
    absent = [name for name, each in environment["optional"].items() if not each]
    print(f"optional: {', '.join(there) or 'none'}; absent: {', '.join(absent) or 'none'}")
    print("diffusion, value and gradients against the dense reference:")
    for name, each in environment["paths"].items():
        if each["agrees"] is None:
            print(f"  {name:<10} not here   {each['why']}")
        else:
            mark = "agrees" if each["agrees"] else "WRONG"
            print(f"  {name:<10} {mark:<10} relative error {each['relative_error']:.1e}")
