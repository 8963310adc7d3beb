"""From what is known to HTML: templates that escape everything they are given."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from depthpde import __version__
from depthpde.pages.style import CSS

KINDS = {
    "style.css": "text/css",
    "dash.css": "text/css",
    "dash.js": "text/javascript",
    "chart.js": "text/javascript",
    "instrument.js": "text/javascript",
    "live.js": "text/javascript",
    "run.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
"""The files that pages need, and what they are: nothing else is served as a file."""


class Pages:
    """The pages of one dashboard.

    Args:
        folder: What the results folder is called on every page.
    """

    def __init__(self, folder: str) -> None:
        self.environment = Environment(
            loader=PackageLoader("depthpde.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.globals.update(folder=folder, version=__version__)
        for name in self.environment.list_templates():
            self.environment.get_template(name)  # compiled now: the first visitor waits for none

    def render(self, name: str, **values: Any) -> str:
        """Render a whole page."""
        return self.environment.get_template(name).render(**values)

    def piece(self, template: str, macro: str, *values: Any) -> Markup:
        """Render a part of a page that is also sent by itself when it changes."""
        drawn: Markup = getattr(_module(self.environment.get_template(template)), macro)(*values)
        return Markup(str(drawn).strip())


def static_file(name: str) -> tuple[bytes, str] | None:
    """Return the content and kind of one of the few files that pages need."""
    if name not in KINDS:
        return None
    if name == "style.css":  # the report's own, so that both look alike
        return CSS.encode(), KINDS[name]
    return (files("depthpde.web") / "static" / name).read_bytes(), KINDS[name]


def digest(*parts: str) -> str:
    """Name a state of a page: two that differ have different names."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _module(template: Template) -> Any:
    return template.module
