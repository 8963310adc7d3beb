"""Tables and figures as files: CSV, LaTeX, Markdown, text, SVG, and PDF where asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from depthpde.errors import import_optional
from depthpde.pages.formatting import file_names
from depthpde.pages.style import standalone
from depthpde.pages.table import Table
from depthpde.records.findings import Findings
from depthpde.report.claim_tables import claim_tables
from depthpde.report.grid_section import GridSection
from depthpde.report.provenance import Provenance, RunRow

TABLES, FIGURES = "tables", "figures"
CLAIM_TABLES = f"{TABLES}/claims"


def write_tables(
    grid_sections: Sequence[GridSection],
    out: Path,
    origin: Provenance,
    *,
    parquet: bool = False,
) -> list[Path]:
    """Write every table of grids in four forms and the runs as CSV, and return their files.

    Args:
        grid_sections: What to write of.
        out: The report's folder.
        origin: What `trace` returned.
        parquet: Write the numbers as Parquet too; needs pyarrow.
    """
    folder = out / TABLES
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    stems = file_names([grid_section.evidence.name for grid_section in grid_sections])
    for grid_section in grid_sections:
        stem = stems[grid_section.evidence.name]
        for name, table in ((stem, grid_section.table), (f"{stem}-cost", grid_section.cost)):
            written += _write_table(folder / name, table, parquet=parquet)
        runs = _runs(origin.rows[grid_section.evidence.name])
        written.append(_write(folder / f"{stem}-runs.csv", runs.csv()))
        written += _write_parquet(folder / f"{stem}-runs", runs) if parquet else []
    return written


def write_claims(findings: Sequence[Findings], out: Path, *, parquet: bool = False) -> list[Path]:
    """Write the claims of every experiment and the tables beside them, and return their files.

    Args:
        findings: What experiments ended in.
        out: The report's folder.
        parquet: Write the numbers as Parquet too; needs pyarrow.
    """
    folder = out / CLAIM_TABLES
    folder.mkdir(parents=True, exist_ok=True)
    named = {stem: t for tables in claim_tables(findings).values() for stem, t in tables.items()}
    return [
        path
        for stem, table in named.items()
        for path in _write_table(folder / stem, table, parquet=parquet)
    ]


def _write_table(stem: Path, table: Table, *, parquet: bool) -> list[Path]:
    """Write one table in every form; a stem may hold dots."""
    forms = {
        "csv": table.csv(),
        "tex": table.latex(),
        "md": table.markdown(),
        "txt": table.text(),
    }
    written = [_write(stem.with_name(f"{stem.name}.{kind}"), text) for kind, text in forms.items()]
    return written + (_write_parquet(stem, table) if parquet else [])


def _write_parquet(stem: Path, table: Table) -> list[Path]:
    """Write the numbers of a table for programs that read columns; none where it has none."""
    arrow = import_optional("pyarrow", "`--parquet`", "tables")
    if not table.tidy:
        return []
    path = stem.with_name(f"{stem.name}.parquet")
    columns = arrow.Table.from_pylist([dict(row) for row in table.tidy])
    import_module("pyarrow.parquet").write_table(columns, path)
    return [path]


def _runs(rows: Sequence[RunRow]) -> Table:
    """Return the runs of a grid as a table for machines."""
    names = ("task", "variant", "seed", "state", "accuracy", "run", "data", "environment")
    tidy = tuple({name: getattr(row, name) for name in names} for row in rows)
    return Table(title="", heads=names, rows=(), tidy=tidy)


def write_figures(
    grid_sections: Sequence[GridSection], out: Path, *, pdf: bool = False
) -> list[Path]:
    """Write every figure as an SVG file of its own, and return the files.

    Args:
        grid_sections: What to write of.
        out: The report's folder.
        pdf: Write each as PDF too; needs the ``paper`` extra.
    """
    folder = out / FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _figures(grid_sections):
        alone = standalone(figure)
        written.append(_write(folder / f"{name}.svg", alone))
        if pdf:
            written.append(_write(folder / f"{name}.pdf", to_pdf(alone)))
    return written


def to_pdf(figure: str) -> bytes:
    """Return an SVG file as PDF, without the clock: the same figure gives the same bytes.

    Args:
        figure: What `standalone` returned.
    """
    try:
        draw = import_module("cairosvg").svg2pdf
    except (ImportError, OSError) as error:  # OSError: the C library cairo is not there
        raise ValueError(
            f"`--paper` needs cairosvg and the library cairo, got {error}; install them with: "
            "pip install 'depthpde[paper]' (and libcairo2), or leave --paper out"
        ) from error
    made: bytes = draw(bytestring=figure.encode())
    return re.sub(rb"/CreationDate \(D:\d{14}", b"/CreationDate (D:19700101000000", made)


def _write(path: Path, content: str | bytes) -> Path:
    """Write a file that can always be made again: nothing waits for the disk."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _figures(grid_sections: Sequence[GridSection]) -> Iterator[tuple[str, str]]:
    stems = file_names([grid_section.evidence.name for grid_section in grid_sections])
    for grid_section in grid_sections:
        stem = stems[grid_section.evidence.name]
        tasks, variants, measures = (
            file_names(list(each))
            for each in (grid_section.curves, grid_section.evidence.variants, grid_section.depth)
        )
        for name, figure in grid_section.figures.items():
            yield f"{stem}-{name}", figure
        for task, figure in grid_section.curves.items():
            yield f"{stem}-curves-{tasks[task]}", figure
        for measure, figure in grid_section.depth.items():
            yield f"{stem}-depth-{measures[measure]}", figure
        for variant_section in grid_section.variant_sections:
            for name, drawn in variant_section.figures.items():
                if not name.startswith("curve-"):
                    yield f"{stem}-{variants[variant_section.variant]}-{name}", drawn.svg
