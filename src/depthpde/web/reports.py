"""The report that somebody wrote into the results folder, shown beside the live pages.

It is a stranger's file in our address: it is sent with a policy under which nothing in it runs,
nothing is loaded, and it cannot act as one of our pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from depthpde.files import read_plain
from depthpde.pages.formatting import file_names
from depthpde.records.index.index import Index
from depthpde.report.site import CLAIMS, START

FOLDER = "report"
KINDS = {
    ".html": "text/html", ".csv": "text/plain", ".md": "text/plain", ".tex": "text/plain",
    ".txt": "text/plain",
}  # fmt: skip
SANDBOX = (
    "sandbox allow-popups allow-top-navigation-by-user-activation; default-src 'none'; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
LARGEST = 16 * 2**20


class WrittenReport:
    """What a report left in a results folder.

    Args:
        index: Of the results folder.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.folder = index.root / FOLDER

    def links(self) -> dict[str, str]:
        """Return name → address of the pages that every page leads to."""
        known = {"Report": START, "Claims": CLAIMS}
        return {name: f"/{FOLDER}/{page}" for name, page in known.items() if self._path(page)}

    def grids(self, names: Sequence[str]) -> dict[str, str]:
        """Return grid → address of its page, where it has one."""
        pages = {name: f"grid-{stem}.html" for name, stem in file_names(list(names)).items()}
        return {n: f"/{FOLDER}/{page}" for n, page in pages.items() if self._path(page)}

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return the content and kind of one file; None for anything that is not of a report."""
        path = self._path(name)
        if path is None:
            return None
        try:
            return read_plain(path, LARGEST), KINDS[path.suffix]
        except (OSError, ValueError):
            return None

    def _path(self, name: str) -> Path | None:
        """Find a file of the report that truly lies inside of it."""
        parts = name.split("/")
        if len(parts) > 3 or any(not part or part.startswith(".") for part in parts):
            return None
        path = self.folder.joinpath(*parts)
        try:
            if path.suffix not in KINDS or not path.is_file():
                return None
            inside = path.resolve().is_relative_to(self.folder)
        except (OSError, ValueError):
            return None
        return path if inside else None
