"""What the Triton kernels cost, found without a GPU: by compiling them and by counting.

    python benchmarks/gpu_plan.py            print both tables
    python benchmarks/gpu_plan.py --check    and exit 1 if a bar is missed

Compiled: every kernel ahead of time for sm_80, sm_90 and gfx942, with registers, spills and the
share of wide loads and stores as the vendors' assemblers tell them. Counted: our launches, and the
loads and stores of a run in Triton's interpreter: sectors of 32 bytes that a program touches, each
once (the first cache keeps a block and its halo; what a neighbour read is not credited), over the
least: one read and one write of a field forward, two reads and one write backward. Not counted:
torch's own small launches (a sigmoid of the ratio, the sum over blocks). No GPU has run these
kernels; `gpu.py` is for whoever has one.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHAPE = (2, 1024, 64)
"""The counted field: two sequences, several blocks of sites."""
SECTOR = 32
TARGETS = (("cuda", 80, 32), ("cuda", 90, 32), ("hip", "gfx942", 64))


@dataclass(frozen=True)
class Row:
    """One line of a table; `bar` is the most that is allowed."""

    what: str
    measured: float
    bar: float | None = None
    rest: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bar is met; a line without one always passes."""
        return self.bar is None or self.measured <= self.bar

    def __str__(self) -> str:
        bar = "" if self.bar is None else f"≤ {self.bar:g} {'ok' if self.passed else 'MISSED'}"
        return f"{self.what:<58}{self.measured:>8.2f}  {bar:<14}{self.rest}"


def kernels() -> dict[str, tuple[Any, dict[str, str], dict[str, Any]]]:
    """Give every kernel with the types of its pointers and its compile-time constants."""
    from depthpde.operators.diffusion.device import adaptive, edge_steps, filters, implicit, taps

    wide = {"SITES": 128, "FEATURES": 32, "HAS_EDGES": False, "SPAN": 1}
    field, sums = "*bf16", "*fp32"
    named = {
        "u": field, "g": field, "out": field, "half": sums, "taps": sums, "tails": sums,
        "sums": sums, "partial": sums, "params": sums, "ratio": sums, "products": sums,
        "edges": "*u8", "weight": sums, "kinds": "*i32", "table": "*fp64", "grad": sums,
        "by_ratio": "*fp64", "by_weight": "*fp64", "k": "i32", "c": "fp32",
    }  # fmt: skip
    small = {"DOUBLE": True, "N": 32, "FEATURES": taps.FEATURES}
    blocks = {"SITES": 32, "FEATURES": 64, "HAS_EDGES": True}
    floats = {**named, "k": "fp32", "c": "fp32"}
    solved = {**named, "y": field, "solution": sums, "quotients": sums, "theta": "fp32"}
    chain = {"HAS_EDGES": True, "FEATURES": implicit.FEATURES}
    return {
        "filter": (filters.mirrored, named, {**wide, "SUMMING": False}),
        "filter, walls inside": (
            filters.mirrored, named, {**wide, "HAS_EDGES": True, "SPAN": 32, "SUMMING": False},
        ),
        "filter, backward": (filters.mirrored, named, {**wide, "SUMMING": True}),
        "causal filter": (filters.causal, named, {**wide, "ZEROS": False}),
        "causal filter, backward": (
            filters.causal_adjoint, named, {**wide, "ZEROS": False, "SUMMING": True},
        ),
        "ratio by edge": (edge_steps.step, floats, {**blocks, "ADJOINT": False}),
        "ratio by edge, backward": (edge_steps.step, floats, {**blocks, "ADJOINT": True}),
        "adaptive": (adaptive.step, floats, blocks),
        "adaptive, backward": (adaptive.step_adjoint, floats, blocks),
        "backward Euler": (implicit.solve, solved, {**chain, "DOUBLED": False}),
        "Crank–Nicolson": (implicit.solve, solved, {**chain, "DOUBLED": True}),
        "taps": (taps.make, {**named, "out": sums}, small),
        "taps, backward": (taps.pull, named, small),
    }  # fmt: skip


def compile_row(name: str, target: tuple[Any, ...]) -> Row:
    """Compile one kernel for one target, and read what the assembler says of it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function, types, constants = kernels()[name]
    signature, known = {}, {}
    for place, each in enumerate(function.arg_names):
        signature[each] = "constexpr" if each in constants else types.get(each, "i32")
        if signature[each].startswith("*") or each in ("dim", "length"):
            known[(place,)] = [["tt.divisibility", 16]]
    fixed = dict(constants)
    if "dilation" in signature:  # as a launch with dilation 1 is specialised
        signature["dilation"], fixed["dilation"] = "constexpr", 1
    done = triton.compile(ASTSource(function, signature, fixed, known), target=GPUTarget(*target))
    registers, spills, code = _read(done, target)
    moved = [width for line in code if (width := _width(line))]
    wide = sum(width for width in moved if width == 128) / sum(moved)
    arch = f"sm_{target[1]}" if target[0] == "cuda" else str(target[1])
    rest = f"{registers:>4} registers, {wide:>4.0%} of what is moved goes by 128 bits"
    return Row(f"{arch} {name}", spills, 0, rest)


def _read(done: Any, target: tuple[Any, ...]) -> tuple[int, int, list[str]]:
    """Give registers of a thread, bytes (AMD: registers) spilled, and the code."""
    if target[0] == "hip":
        text = done.asm["amdgcn"]
        found = {key: int(n) for key, n in re.findall(r"\.(vgpr_\w*count):\s+(\d+)", text)}
        return found["vgpr_count"], found["vgpr_spill_count"], text.splitlines()
    import triton

    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(done.asm["ptx"])
        arch = f"sm_{target[1]}" + ("a" if target[1] == 90 else "")
        said = subprocess.run(
            [str(ptxas), "-v", f"--gpu-name={arch}", str(source), "-o", os.devnull],
            capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
    spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill", said))
    match = re.search(r"Used (\d+) registers", said)
    assert match is not None, said
    return int(match[1]), spilled, done.asm["ptx"].splitlines()


def _width(line: str) -> int:
    """Give the bits that one thread moves by this instruction, 0 if it moves none."""
    if nvidia := re.search(r"\b(?:ld|st)\.global\S*?(?:\.v(\d))?\.b(\d+)", line):
        return int(nvidia[1] or 1) * int(nvidia[2])
    if amd := re.search(r"\b(?:global|buffer)_(?:load|store)_(?:dword|b)(x?\d*)", line):
        return 32 * int(amd[1].removeprefix("x") or 1)
    return 0


class Counter:
    """Count launches, and the sectors that every program of Triton's interpreter touches."""

    def __init__(self) -> None:
        self.launches: list[str] = []
        self.bytes = 0
        self._seen: set[int] = set()

    def __enter__(self) -> Counter:
        from triton.runtime import interpreter as i

        builder, self._undo = i.interpreter_builder, []
        self._patch(builder, "set_grid_idx", self._begin)
        self._patch(builder, "create_masked_load", lambda at, mask, *_: self._touch(at, mask))
        self._patch(builder, "create_masked_store", lambda at, _, mask, *__: self._touch(at, mask))
        self._patch(i.GridExecutor, "__call__", lambda executor, *_, **__: self._launch(executor))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, old in self._undo:
            setattr(owner, name, old)

    def _patch(self, owner: Any, name: str, before: Callable[..., None]) -> None:
        old = getattr(owner, name)
        self._undo.append((owner, name, old))

        def run(*arguments: Any, **rest: Any) -> Any:
            before(*arguments, **rest)
            return old(*arguments, **rest)

        setattr(owner, name, run)

    def _launch(self, executor: Any) -> None:
        self.launches.append(executor.fn.__name__)

    def _begin(self, *_: Any) -> None:
        self._seen = set()

    def _touch(self, pointers: Any, mask: Any) -> None:
        found = set((pointers.data[mask.data] // SECTOR).ravel().tolist()) - self._seen
        self._seen |= found
        self.bytes += SECTOR * len(found)


def count_rows() -> list[Row]:
    """Run every layer in the interpreter and count."""
    import torch

    import depthpde as dp
    from depthpde.layers import multiscale
    from depthpde.operators.diffusion import adaptive, dispatch, filtering, taps

    for module in (multiscale, adaptive, dispatch, filtering, taps):
        module.on_gpu = lambda u: True  # type: ignore[attr-defined]
    dispatch.choose = lambda u, problem: dp.Method.TRITON  # type: ignore[assignment]
    layers = {
        "Diffusion": (lambda: dp.Diffusion(SHAPE[2]), 1.3),
        "Diffusion, 4 steps": (lambda: dp.Diffusion(SHAPE[2], steps=4), 1.3),
        "Diffusion, 16 steps": (lambda: dp.Diffusion(SHAPE[2], steps=16), 1.3),
        "Diffusion, 16 causal steps": (lambda: dp.Diffusion(SHAPE[2], steps=16, causal=True), 1.3),
        "MultiscaleDiffusion": (lambda: dp.MultiscaleDiffusion(SHAPE[2]), 1.5),
        "AdaptiveDiffusion": (lambda: dp.AdaptiveDiffusion(SHAPE[2]), 1.3),
    }
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        for name, (build, bar) in layers.items():
            layer, u = build(), torch.randn(SHAPE).to(dtype).requires_grad_()
            field = u.numel() * u.element_size()
            what = f"{str(dtype)[6:]} {name}"
            with Counter() as forward:
                out = layer(u)
            with Counter() as backward:
                torch.autograd.grad(out, (u, *layer.parameters()), torch.ones_like(out))
            for way, counter, least, most in (
                ("forward", forward, 2, bar),
                ("backward", backward, 3, None),
            ):
                launches = f"{len(counter.launches)} launches: {', '.join(counter.launches)}"
                rows.append(Row(f"{what} {way}", counter.bytes / field / least, most, launches))
    return rows


def main() -> int:
    """Print both tables; with --check, judge them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--only", choices=("compiled", "counted"), help="one of the two tables")
    parser.add_argument("--kernel", help="compile this one alone")
    arguments = parser.parse_args()
    if arguments.only is None:  # Triton reads its setting once: each table is a process of its own
        flags = ["--check"] if arguments.check else []
        return max(
            subprocess.run([sys.executable, __file__, "--only", each, *flags]).returncode
            for each in ("compiled", "counted")
        )
    os.environ["TRITON_INTERPRET"] = "1" if arguments.only == "counted" else "0"
    if arguments.only == "compiled":
        print("bytes (AMD: registers) spilled, by kernel and target")
        names = [arguments.kernel] if arguments.kernel else list(kernels())
        rows = [compile_row(name, target) for target in TARGETS for name in names]
    else:
        print(f"bytes moved over the least, {'×'.join(map(str, SHAPE))}, counted in sectors")
        rows = count_rows()
    print(*rows, sep="\n")
    missed = [row for row in rows if not row.passed]
    print(f"{len(rows) - len(missed)} of {len(rows)} lines in order")
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
