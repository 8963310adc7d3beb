"""From what is known to HTML: the pages of the dashboard and the few files that they need."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from depthpde.pages.resources import read_text
from depthpde.pages.style import read_shared, style_sheet
from depthpde.pages.templates import make_environment

OWN = {
    "dash.css": "text/css",
    "dash.js": "text/javascript",
    "live.js": "text/javascript",
    "run.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
SHARED = {
    "chart.js": "text/javascript",
    "diffusion.js": "text/javascript",
    "instrument.js": "text/javascript",
}
SHEET = "style.css"
KINDS = {SHEET: "text/css", **SHARED, **OWN}
"""The files that pages need, and what they are: nothing else is served as a file."""


class Pages:
    """The pages of one dashboard.

    Args:
        folder: What the results folder is called on every page.
    """

    def __init__(self, folder: str) -> None:
        self.environment = make_environment("depthpde.web")
        self.environment.globals.update(folder=folder, reports={})
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
    if name == SHEET:
        text = style_sheet(read_shared("chart.css"))
    else:
        text = read_shared(name) if name in SHARED else read_text("depthpde.web", name)
    return text.encode(), KINDS[name]


def digest(*parts: str) -> str:
    """Name a state of a page: two that differ have different names."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _module(template: Template) -> Any:
    return template.module
