"""Files that ship with the package: style sheets and scripts, in ``static`` of a folder."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', flags=re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const)\b)", flags=re.M)


@cache
def read_text(package: str, name: str) -> str:
    """Return one file of a folder's ``static``; a folder reads only its own.

    Args:
        package: The folder, such as ``depthpde.pages``.
        name: The file.
    """
    return (files(package) / "static" / name).read_text(encoding="utf-8")


def inline_modules(package: str, *names: str) -> str:
    """Join script modules into one text, for a page that is a single file.

    A browser resolves no import inside one file, so imports go and what they name
    comes first.

    Args:
        package: The folder of all of them.
        *names: The modules, each after those it imports.

    Example:
        >>> "import {" in inline_modules("depthpde.pages", "diffusion.js")
        False

    Raises:
        ValueError: A module is missing among `names` or comes after one that imports it.
    """
    parts: list[str] = []
    for position, name in enumerate(names):
        text = read_text(package, name)
        missing = [each for each in IMPORT.findall(text) if each not in names[:position]]
        if missing:
            raise ValueError(
                f"`names` must list what {name} imports above it, got {', '.join(names)}; "
                f"put {', '.join(missing)} before {name}"
            )
        parts.append(EXPORT.sub("", IMPORT.sub("", text)))
    return "\n".join(parts)
