"""Every recipe of docs/simulator.md runs as written."""

import re
from pathlib import Path

import torch

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_the_recipes_run_as_written():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    torch.manual_seed(0)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["path"].states.shape == (61, 2, 12, 16)
    assert names["smooth"].states.shape == names["blocks"].states.shape
    assert names["twin"](names["tokens"]).shape == (2, 3)
