"""One palette and one style sheet for every page: light, dark, paper and phone."""

from __future__ import annotations

import base64
import hashlib
import re

from depthpde.pages.resources import read_text

LIGHT = {
    "ground": "#ffffff", "ink": "#1b1f24", "quiet": "#5a636e", "rule": "#e3e6ea",
    "panel": "#f7f8fa", "accent": "#0b62c4", "baseline": "#717a85", "warning": "#b3441b",
}  # fmt: skip
"""One accent for ours, grey for baselines and controls, one warning."""
DARK = {
    "ground": "#101317", "ink": "#e6e9ed", "quiet": "#9aa4b0", "rule": "#2a3038",
    "panel": "#171b21", "accent": "#6cb0ff", "baseline": "#8b95a2", "warning": "#f0946b",
}  # fmt: skip

SHARED = ("style.css", "figure.css")


def style_sheet(*extra: str) -> str:
    """Return the whole style sheet of a page: palette, shared rules, then its own.

    Args:
        *extra: Rules of this page alone; they use the palette's variables and name no colour.

    Example:
        >>> "--accent" in style_sheet("td.mine { color: var(--accent); }")
        True
    """
    palette = (
        f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}\n"
        # paper is white whatever the reader's screen prefers
        f"@media print {{ :root {{ {_variables(LIGHT)} }} }}\n"
    )
    return palette + "".join((*map(read_shared, SHARED), *extra))


def read_shared(name: str) -> str:
    """Return one of the style sheets or scripts that several pages share."""
    return read_text("depthpde.pages", name)


def csp_hash(text: str) -> str:
    """Return what a content-security policy calls an inline sheet or script: ``sha256-…``."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def standalone(figure: str) -> str:
    """Return a figure as a file of its own, in the colours of paper.

    Args:
        figure: What a function of `figures` returned.
    """
    rules = re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], read_shared("figure.css"))
    ground = f"svg {{ background: {LIGHT['ground']}; }}"  # dark ink needs it on a dark page
    sheet = f"<style>{rules.replace('svg.figure ', '')}{ground}</style>"
    head, mark, rest = figure.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{mark}{sheet}{rest}\n'


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
