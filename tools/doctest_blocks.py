"""A griffe extension: the examples of docstrings become code blocks.

    >>> dp.diffuse(u, 0.25)        →        ```pycon
                                            >>> dp.diffuse(u, 0.25)
                                            ```

Markdown reads a line that begins with `>>>` as a quotation in a quotation.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n| *$).*)*", re.M)
"""From a prompt to the next empty line."""


def fence(text: str) -> str:
    """Return a docstring with a fence around every example."""
    return EXAMPLE.sub(_fenced, text)


def _fenced(found: re.Match[str]) -> str:
    indent = found["indent"]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"


class DoctestBlocks(griffe.Extension):
    """Fences the examples of every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
