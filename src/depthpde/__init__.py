"""depthpde: Transformers as reaction–diffusion PDEs. Network depth is PDE time.

    ∂u/∂t = D u + A[u] + R(u),   kept in bounds by S

`__init__.pyi` lists the public names. A name is loaded when it is first used, so importing the
package imports no torch.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.2.0"


def _read_stub() -> dict[str, tuple[str, str]]:
    """Return the module and the name inside it of every public name."""
    homes: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            homes |= {each.name: (node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Assign):  # tasks = TASKS
            (target,), value = node.targets, node.value
            homes[ast.unparse(target)] = homes.pop(ast.unparse(value))
    return homes


_HOMES = _read_stub()
__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        from depthpde.errors import nearest

        near = nearest(name, __all__)
        hint = "" if near is None else f"; did you mean {near!r}?"
        raise AttributeError(f"module 'depthpde' has no attribute {name!r}{hint}")
    home, inside = _HOMES[name]
    found = import_module(f"{home}.{inside}" if home == __name__ else home)
    value = found if home == __name__ else getattr(found, inside)
    globals()[name] = value  # the next use finds it at once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
