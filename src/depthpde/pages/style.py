"""The look of every page: light, dark, paper and phone; and of figures that leave it."""

from __future__ import annotations

import base64
import hashlib
import re

LIGHT = {
    "ground": "#ffffff", "ink": "#1b1f24", "quiet": "#5a636e", "rule": "#e3e6ea",
    "panel": "#f7f8fa", "accent": "#0b62c4", "baseline": "#717a85", "warning": "#b3441b",
}  # fmt: skip
"""One accent for ours, grey for baselines and controls, one warning."""
DARK = {
    "ground": "#101317", "ink": "#e6e9ed", "quiet": "#9aa4b0", "rule": "#2a3038",
    "panel": "#171b21", "accent": "#6cb0ff", "baseline": "#8b95a2", "warning": "#f0946b",
}  # fmt: skip

FIGURE = """
svg.figure text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  fill: var(--ink); font-variant-numeric: tabular-nums; }
svg.figure text.tick { font-size: 11px; fill: var(--quiet); }
svg.figure text.head { font-size: 12px; font-weight: 600; }
svg.figure text.strong { font-weight: 650; }
svg.figure text.quiet { fill: var(--quiet); }
svg.figure text.on { font-size: 12px; }
svg.figure text.warn { font-size: 11px; fill: var(--warning); }
svg.figure .axis { stroke: var(--quiet); stroke-width: 1; fill: none; }
svg.figure .grid { stroke: var(--rule); stroke-width: 1; }
svg.figure .zero { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 3; }
svg.figure .line-ours { stroke: var(--accent); stroke-width: 2; fill: none; }
svg.figure .line-baseline { stroke: var(--baseline); stroke-width: 1.75; stroke-dasharray: 6 4;
  fill: none; }
svg.figure .line-control { stroke: var(--baseline); stroke-width: 1.75; fill: none; }
svg.figure .line-other { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 0.1 4.5;
  stroke-linecap: round; fill: none; }
svg.figure .line-trivial { stroke: var(--warning); stroke-width: 1.25; stroke-dasharray: 2 3;
  fill: none; }
svg.figure .band-ours { fill: var(--accent); fill-opacity: 0.16; }
svg.figure .band-baseline, svg.figure .band-control, svg.figure .band-other {
  fill: var(--baseline); fill-opacity: 0.16; }
svg.figure .mark-ours { fill: var(--accent); stroke: var(--accent); }
svg.figure .mark-control { fill: var(--ground); stroke: var(--baseline); stroke-width: 2; }
svg.figure .mark-baseline, svg.figure .mark-other { fill: var(--baseline);
  stroke: var(--baseline); }
svg.figure .whisker-ours { stroke: var(--accent); stroke-width: 2; }
svg.figure .whisker-control { stroke: var(--baseline); stroke-width: 2; }
svg.figure .whisker-baseline, svg.figure .whisker-other { stroke: var(--baseline);
  stroke-width: 2; }
svg.figure .seed { stroke: var(--ink); stroke-opacity: 0.5; stroke-width: 1; fill: none; }
svg.figure .rug-ours { stroke: var(--accent); stroke-width: 1; fill: none; }
svg.figure .up { fill: var(--accent); }
svg.figure .down { fill: var(--warning); }
svg.figure .none { fill: var(--baseline); }
svg.figure .frame { fill: none; stroke: var(--rule); stroke-width: 1; }
svg.figure .clear { stroke: var(--ink); stroke-width: 2; fill: none; }
svg.figure .box { fill: var(--panel); stroke: var(--baseline); stroke-width: 1; }
svg.figure .flow { stroke: var(--baseline); stroke-width: 1.5; fill: none; }
svg.figure .tip { fill: var(--baseline); }
svg.figure .ground { fill: var(--ground); }
"""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


CSS = (
    f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""
    + """* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0 auto; padding: 1.25rem 1.5rem 4rem; max-width: 80rem; background: var(--ground);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
a { color: inherit; text-decoration-color: var(--baseline); text-underline-offset: 0.2em; }
a:focus-visible, input:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px;
}
h1 { font-size: 1.35rem; margin: 0; font-weight: 650; line-height: 1.3; }
h2 { font-size: 1.15rem; margin: 3rem 0 0.5rem; font-weight: 650; }
h3 { font-size: 1rem; margin: 0 0 0.35rem; font-weight: 650; }
section > h3 { margin-top: 1.75rem; }
p { margin: 0.35rem 0; max-width: 48rem; }
.quiet, figcaption, .notes { color: var(--quiet); font-size: 0.87rem; }
p.lead { max-width: none; color: var(--quiet); margin: 0.15rem 0 0; }
.verdict { font-size: 1rem; margin: 0.9rem 0 0; padding: 0; list-style: none; }
.verdict li { margin: 0.2rem 0; padding-left: 1.4rem; position: relative; }
.verdict li::before { content: attr(data-mark); position: absolute; left: 0;
  color: var(--quiet); font-weight: 650; }
.verdict li.ours strong, .verdict li.ours::before { color: var(--accent); }
.verdict li.warning strong, .verdict li.warning::before { color: var(--warning); }
.warned { color: var(--warning); font-size: 0.87rem; }
.first { display: grid; grid-template-columns: minmax(0, 25rem) minmax(0, 1fr); gap: 3rem;
  margin-top: 1.25rem; align-items: start; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2rem;
  align-items: start; }
.multiples figure { max-width: 100%; }
.multiples figcaption { max-width: 22rem; }
summary { cursor: pointer; color: var(--quiet); }
.multiples { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: start; }
figure { margin: 0.75rem 0; }
figcaption { margin-top: 0.35rem; max-width: 48rem; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 1.25rem; }
svg.figure { display: block; max-width: 100%; height: auto; overflow: visible; }
svg.figure a { cursor: pointer; }
svg.figure a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
svg.figure a:hover text { text-decoration: underline; text-underline-offset: 0.2em; }
svg.figure text.warn { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); font-size: 0.87rem; padding-bottom: 0.35rem; }
th { text-align: left; font-weight: 500; color: var(--quiet); font-size: 0.87rem; }
tbody th { color: var(--ink); font-size: inherit; white-space: nowrap; }
th, td { padding: 0.22rem 1rem 0.22rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; }
td a, th a { text-decoration-color: var(--rule); }
td.strong { font-weight: 650; }
.runs { font-size: 0.8rem; }
.runs td, .runs th { padding-right: 0.75rem; white-space: nowrap; }
.runs tr:target, article:target > h3 { background: var(--panel);
  outline: 2px solid var(--accent); outline-offset: 2px; }
code { font: 0.92em ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; }
.claims td:nth-child(-n+2) { min-width: 11rem; }
.tag { white-space: nowrap; font-size: 0.8rem; color: var(--quiet); border: 1px solid var(--rule);
  border-radius: 0.25rem; padding: 0 0.35rem; font-weight: 400; }
.tag.confirmed { color: var(--accent); border-color: var(--accent); }
.tag.refused { color: var(--warning); border-color: var(--warning); }
article { border-top: 1px solid var(--rule); padding: 1.1rem 0 0.5rem; }
nav.map { font-size: 0.87rem; color: var(--quiet); margin-top: 0.35rem; }
nav.map a { margin-right: 1rem; white-space: nowrap; }
footer { margin-top: 3rem; color: var(--quiet); font-size: 0.85rem; }
@media (max-width: 60rem) {
  .first, .pair { grid-template-columns: minmax(0, 1fr); gap: 1.25rem; }
  body { padding: 1rem 1rem 3rem; }
  .wide svg.figure { max-width: none; }
}
@media print {
  :root { color-scheme: light; PAPER }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, h3 { break-after: avoid; } figure, tr, li { break-inside: avoid; }
  .wide svg.figure { max-width: 100%; } nav.map { display: none; }
  .scroll { overflow: visible; } a { text-decoration: none; }
  .runs { font-size: 6.5pt; } .runs td, .runs th { white-space: normal; padding-right: 0.4rem; }
}
""".replace("PAPER", _variables(LIGHT))
    + FIGURE
)
"""The whole style sheet; a page needs no other."""


def csp_hash(css: str = CSS) -> str:
    """Return what a content-security policy calls a style sheet: ``sha256-…``."""
    digest = hashlib.sha256(css.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def standalone(figure: str) -> str:
    """Return a figure as a file of its own, in the colours of paper.

    Args:
        figure: What a function of `figures` returned.
    """
    rules = re.sub(r"var\(--(\w+)\)", lambda found: LIGHT[found[1]], FIGURE)
    ground = f"svg {{ background: {LIGHT['ground']}; }}"  # dark ink needs it on a dark page
    sheet = f"<style>{rules.replace('svg.figure ', '')}{ground}</style>"
    head, mark, rest = figure.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{mark}{sheet}{rest}\n'
