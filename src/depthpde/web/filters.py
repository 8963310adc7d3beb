"""What a visitor wants to see of the board: the whole choice is the address, to be shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from depthpde.records.record import State

ORDERS = {"": "unfinished first", "newest": "newest first", "best": "best first"}
"""Value in the address → words."""
LONGEST = 200
"""Characters of a text that is searched for; more is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFilter:
    """A choice of runs; what is empty leaves all."""

    grid: str = ""
    task: str = ""
    state: str = ""
    q: str = ""
    """Words that the run's name, variant, error or id must all contain."""
    sort: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> BoardFilter:
        """Read an address; what it says that is none of ours counts as nothing."""
        state, sort, page = (query.get(key, "") for key in ("state", "sort", "page"))
        return cls(
            grid=query.get("grid", "")[:LONGEST],
            task=query.get("task", "")[:LONGEST],
            state=state if state in list(State) else "",
            q=" ".join(query.get("q", "")[:LONGEST].split()),
            sort=sort if sort in ORDERS else "",
            page=int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
        )

    @property
    def lists(self) -> bool:
        """Whether single runs are asked for, rather than tables of variants by tasks."""
        return bool(self.state or self.q or self.sort)

    def address(self, **changes: str | int) -> str:
        """Return the address of this choice, or of one that differs a little."""
        now = replace(self, **changes)  # type: ignore[arg-type]
        parameters = {
            key: value
            for key in ("grid", "task", "state", "q", "sort", "page")
            if (value := getattr(now, key)) and (key, value) != ("page", 1)
        }
        return f"/?{urlencode(parameters)}" if parameters else "/"
