"""One template environment: everything a page is given is escaped, and nothing may be missing."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from depthpde import __version__
from depthpde.pages.resources import inline_modules
from depthpde.pages.style import csp_hash, style_sheet

if TYPE_CHECKING:
    from jinja2 import Environment


def make_environment(package: str) -> Environment:
    """Return the environment for the templates of one folder and those that all pages share.

    Args:
        package: The folder whose ``templates`` are read, such as ``depthpde.web``.

    Example:
        >>> make_environment("depthpde.pages").from_string("{{ x }}").render(x="<b>")
        '&lt;b&gt;'
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("depthpde.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(version=__version__)
    return environment


@cache
def _kept_environment(package: str) -> Environment:
    """Return one environment for all pages of a folder: it compiles each template once."""
    return make_environment(package)


def render_document(
    package: str, template: str, /, *, style: str = "", script: str = "", **values: Any
) -> str:
    """Render a page that is one file: its sheet and script inside, the network refused.

    The content-security policy names the digests of both, so nothing else on the page can run.

    Args:
        package: The folder of the template.
        template: Its name; it extends ``document.html``.
        style: Rules of this page alone, after the shared sheet.
        script: A module that runs when the page is there; none if empty.
        **values: What the template shows; text is escaped, `Markup` is not.
    """
    from markupsafe import Markup

    sheet = style_sheet(style)
    return (
        _kept_environment(package)
        .get_template(template)
        .render(
            style=Markup(sheet),
            style_hash=csp_hash(sheet),
            script=Markup(script),
            script_hash=csp_hash(script),
            **values,
        )
    )


def instrument_script() -> str:
    """Return the instrument as one module, for a page that is one file."""
    modules = inline_modules("depthpde.pages", "chart.js", "diffusion.js", "instrument.js")
    return f'{modules}\ninstrument(document.getElementById("instrument"));\n'
