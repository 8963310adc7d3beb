"""A griffe extension: the examples of docstrings become code blocks.

    >>> dp.diffuse(u, 0.25)        →        ```pycon
                                            >>> dp.diffuse(u, 0.25)
                                            ```

Markdown reads a line that begins with `>>>` as a quotation in a quotation.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

EXAMPLE = re.compile(
    r"(?P<section>^ *\w[\w ]*:\n+)?(?P<code>^(?P<indent> *)>>> .*(?:\n(?! *\n| *$).*)*)", re.M
)
"""From a prompt to the next empty line; below `Example:` it belongs to that section."""


def fence(text: str) -> str:
    """Return a docstring with a fence around every example."""
    return EXAMPLE.sub(_fenced, text)


def _fenced(found: re.Match[str]) -> str:
    section, code, indent = found["section"] or "", found["code"], found["indent"]
    if not section:  # indented text is a code block already, and a fence would stand in it
        code, indent = textwrap.dedent(code), ""
    return f"{section}{indent}```pycon\n{code}\n{indent}```"


class DoctestBlocks(griffe.Extension):
    """Fences the examples of every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
