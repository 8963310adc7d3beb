"""One output of a notebook cell that is replaced while something goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any


def live_output() -> Callable[[str], None] | None:
    """Return what shows a text in place of the last one; None outside a notebook.

    Nothing is imported for it: where a notebook's kernel runs, IPython is loaded already.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    shown: Any = import_module("IPython.display").display(_Text(""), display_id=True)

    def show(text: str) -> None:
        shown.update(_Text(text))

    return show


class _Text:
    """A text in both forms that a front end may take."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text, quote=False)}</pre>"
