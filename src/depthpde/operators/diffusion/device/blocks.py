"""How many sites and features one program of a filter takes.

A table by the reach of the filter, compiled ahead of time for real targets and read for spills.
Where `autotune` is on, the first launch of every kind on a GPU times the table's block and those
of half and of twice its sites or features, and the fastest serves from then on. It is off by
default: sums over a block are rounded by its size, so that gradients of taps would differ in the
last bits between two machines, or two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
import triton

from depthpde.shapes import Field

Block = tuple[int, int]

BLOCKS: dict[int, Block] = {4: (64, 64), 16: (128, 32), 64: (128, 32)}
"""Sites and features of a program, by the largest reach; `benchmarks/gpu.py` tries others."""
autotune = False
"""Whether blocks are timed on the device that runs them."""
_fastest: dict[Hashable, Block] = {}


def block_of(reach: int, dim: int) -> Block:
    """Give the sites and features of a program: long blocks where halos are wide."""
    sites, features = next((BLOCKS[most] for most in BLOCKS if reach <= most), BLOCKS[64])
    return sites, min(features, triton.next_power_of_2(dim))


def neighbours(block: Block, dim: int) -> list[Block]:
    """List a block, first, and those of half and twice its sites or features."""
    sites, features = block
    most = triton.next_power_of_2(dim)
    found = [block, (sites // 2, features), (2 * sites, features)]
    found += [(sites, each) for each in (features // 2, 2 * features) if 16 <= each <= most]
    return found


def choose(
    what: str,
    u: Field,
    reach: int,
    launch: Callable[[Block], object],
    clock: Callable[[Callable[[], object]], float] | None = None,
) -> Block:
    """Choose the block of a launch: the table's, or what was fastest for its kind on this device.

    Args:
        what: Name of the kernel.
        u: The field that it reads.
        reach: Of the filter.
        launch: Runs the kernel with a block.
        clock: Times what it is given; by default on the device, where there is one to time.
    """
    block = block_of(reach, u.shape[2])
    timed = clock or (_device_clock if u.is_cuda and not _is_captured() else None)
    if not autotune or timed is None:
        return block
    batch, length, dim = u.shape
    sizes = tuple(triton.next_power_of_2(each) for each in (batch * length, dim, reach + 1))
    name = torch.cuda.get_device_name(u.device) if u.is_cuda else "cpu"
    kind = (what, name, u.dtype, sizes)
    if kind not in _fastest:
        found = {each: timed(lambda b=each: launch(b)) for each in neighbours(block, dim)}  # type: ignore[misc]
        _fastest[kind] = min(found, key=found.__getitem__)
    return _fastest[kind]


def _is_captured() -> bool:
    """Tell whether launches are recorded into a graph now, where nothing can be timed."""
    return torch.cuda.is_current_stream_capturing()


def _device_clock(run: Callable[[], object]) -> float:
    return float(triton.testing.do_bench(run, warmup=5, rep=20, return_mode="median"))
