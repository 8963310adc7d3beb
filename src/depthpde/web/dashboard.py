"""Which address shows what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from depthpde.records.index.entry import Snapshot
from depthpde.records.index.index import Index
from depthpde.records.record import FINISHED, Record
from depthpde.web.board import BoardView, draw_board
from depthpde.web.comparison import Comparisons, ComparisonView, load_statistics
from depthpde.web.diagnosis import DOCTOR, PROBE, draw_doctor
from depthpde.web.filters import ORDERS, BoardFilter
from depthpde.web.live import ServerEvent, stream
from depthpde.web.pages import Pages, digest, static_file
from depthpde.web.probe_verdict import probe_verdict
from depthpde.web.reports import SANDBOX, WrittenReport
from depthpde.web.runs import Curves, RunView, draw_run
from depthpde.web.states import STATE_BADGES, run_name

FRESH = 0.4
"""Seconds for which one reading of the folder serves every request."""
SETTLED = 2.0
"""Seconds after the start before every finished run is looked at."""
KEPT = 64
"""Choices whose board is kept until something changes."""


class DrawnBoard(NamedTuple):
    """The board of one choice at one moment, ready to be sent."""

    version: int
    page: str
    sections: dict[str, str]
    structure: str


@dataclass
class Dashboard:
    """One results folder and its pages."""

    results: Path
    closing: Callable[[], bool] = lambda: False
    """Says that the server wants to end, so that streams end too."""
    index: Index = field(init=False)
    pages: Pages = field(init=False)
    reports: WrittenReport = field(init=False)
    comparisons: Comparisons = field(init=False)
    _seen: tuple[float, Snapshot] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _drawing: threading.Lock = field(default_factory=threading.Lock)
    _drawn: dict[BoardFilter, DrawnBoard] = field(default_factory=dict)
    _compared: dict[str, tuple[ComparisonView | None, Mapping[str, str], str]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.index = Index(self.results)
        self.pages = Pages(self.results.resolve().name)
        self.reports = WrittenReport(self.index)
        self.comparisons = Comparisons(self.index)

    def start(self) -> None:
        """Begin to read the folder, and load what comparisons need, before the first request.

        A page is drawn of what the index knows; the files of all finished runs, which may have
        changed while nobody looked, are looked at right after.
        """
        self._seen = (time.monotonic(), self.index.look(thorough=False))
        threading.Thread(target=self._look_at_all, daemon=True).start()
        threading.Thread(target=load_statistics, daemon=True).start()

    def snapshot(self, *, more: bool = False) -> Snapshot:
        """Return what the folder holds, looked at a moment ago at most.

        Args:
            more: Read on at once where records have not been read yet.
        """
        seen = self._seen
        if seen is not None and not more and self._lock.locked():
            return seen[1]  # somebody is looking: what was seen last is better than waiting
        with self._lock:
            seen = self._seen
            stale = seen is None or time.monotonic() - seen[0] > FRESH
            if seen is None or stale or (more and seen[1].unread):
                snapshot = self.index.look()
                seen = self._seen = (time.monotonic(), snapshot)
            return seen[1]

    def whole(self, until: str = "") -> Snapshot:
        """Return what the folder holds when all of it has been read, or one run of it."""
        snapshot = self.snapshot()
        while snapshot.unread and until not in snapshot.entries and not self.closing():
            time.sleep(0.005)  # lets a page that waits for the lock have it
            snapshot = self.snapshot(more=True)
        return snapshot

    def _look_at_all(self) -> None:
        self.whole()
        time.sleep(SETTLED)  # the first pages come first
        with self._lock:
            self._seen = (time.monotonic(), self.index.look(thorough=True))

    def board(self, request: Request) -> Response:
        """Show the grids, or the runs that the address asks for."""
        drawn = self._board(BoardFilter.read(request.query_params))
        return HTMLResponse(drawn.page)

    def board_events(self, request: Request) -> Response:
        """Send the board whole, then the sections that change.

        Whole, because much may have changed since the page was drawn: a laptop that slept, a
        server that was started again.
        """
        chosen = BoardFilter.read(request.query_params)
        last: dict[str, str] = {}
        version: list[Any] = [None]

        def look() -> list[ServerEvent]:
            if self.snapshot().version == version[0]:
                return []
            drawn = self._board(chosen)
            version[0] = drawn.version
            sections = drawn.sections
            new = {name: each for name, each in sections.items() if last.get(name) != each}
            last.clear()
            last.update(sections)
            events = [ServerEvent("structure", drawn.structure)]
            return [*events, ServerEvent("sections", new)] if new else events

        return stream(look, self.closing)

    def _board(self, chosen: BoardFilter) -> DrawnBoard:
        """Draw the board once for all who look at the same choice of the same moment."""
        snapshot = self.snapshot()
        with self._drawing:
            kept = self._drawn.get(chosen)
            if kept is None or kept.version != snapshot.version:
                self._drawn.pop(chosen, None)
                kept = self._drawn[chosen] = self._draw_board(snapshot, chosen)
                while len(self._drawn) > KEPT:
                    del self._drawn[next(iter(self._drawn))]
            return kept

    def _draw_board(self, snapshot: Snapshot, chosen: BoardFilter) -> DrawnBoard:
        board = draw_board(snapshot, self.index.all_grids(), chosen)
        sections = self._board_sections(board)
        structure = _structure(board)
        page = self.pages.render(
            "board.html",
            here="Board",
            live=True,
            board=board,
            sections=sections,
            structure=structure,
            states=STATE_BADGES,
            orders=ORDERS,
            events="/events/board" + chosen.address()[1:],
            report_pages=self.reports.grids(board.grids),
            reports=self.reports.links(),
        )
        texts = {name: str(each) for name, each in sections.items()}
        return DrawnBoard(snapshot.version, page, texts, structure)

    def run(self, request: Request) -> Response:
        """Show one run."""
        record = self._record(request)
        view = draw_run(self.index, self.snapshot(), record)
        return self._page(
            "run.html", here="", live=True, view=view, sections=self._run_sections(view)
        )

    def run_events(self, request: Request) -> Response:
        """Send a run's new points, its state and the doctor's verdicts as they come."""
        record = self._record(request)
        curves = Curves(self.index, record.id, request.headers.get("last-event-id", ""))
        last: dict[str, str] = {}
        ended = [False]

        def look() -> list[ServerEvent]:
            if ended[0]:
                return []
            snapshot = self.snapshot()
            now = self.index.find(record.id)
            events = curves.look()
            if now is None or record.id not in snapshot.entries:
                return events
            drawn = self._run_sections(draw_run(self.index, snapshot, now))
            new = {name: str(each) for name, each in drawn.items() if last.get(name) != str(each)}
            last.update(new)
            ended[0] = snapshot.entries[record.id].state in FINISHED
            events += [ServerEvent("sections", new)] if new else []
            return [*events, ServerEvent("end", {})] if ended[0] else events

        return stream(look, self.closing)

    def doctor(self, request: Request) -> Response:
        """Show what the doctor and the probe left of one run."""
        record = self._record(request)
        view = draw_doctor(
            record,
            run_name(self.snapshot(), record.id),
            self.index.file(record.id, DOCTOR),
            self.index.file(record.id, PROBE),
        )
        if not view.last.verdicts:  # no doctor watched it; its probe is judged
            view = replace(view, last=probe_verdict(record))
        return self._page("doctor.html", here="", view=view)

    def compare(self, request: Request) -> Response:
        """Compare the chosen variants on the chosen tasks."""
        query = request.query_params
        self.whole()
        view = self.comparisons.draw(
            query.get("grid", ""), query.getlist("task"), query.getlist("variant")
        )
        links, kept = self.reports.links(), self._compared.pop(str(query), None)
        if kept is None or kept[0] is not view or kept[1] != links:
            page = self.pages.render("compare.html", here="Compare", view=view, reports=links)
            kept = (view, links, page)
        self._compared[str(query)] = kept
        while len(self._compared) > KEPT:
            del self._compared[next(iter(self._compared))]
        return HTMLResponse(kept[2])

    def report(self, request: Request) -> Response:
        """Give a page or table of the report that was written into the results folder."""
        found = self.reports.read(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"content-security-policy": SANDBOX})

    def theory(self, request: Request) -> Response:
        """Show the instrument; the page reads its setting from the address and computes itself."""
        return self._page("theory.html", here="Theory")

    def static(self, request: Request) -> Response:
        """Give one of the few files that pages need."""
        found = static_file(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"cache-control": "no-cache"})

    def wrong(self, request: Request, error: Exception) -> Response:
        """Say that there is nothing at an address, or that the dashboard itself is at fault."""
        if isinstance(error, HTTPException):
            heading = f"{error.status_code}: not here"
            words = "There is no such page, or no such run in this results folder."
            return self._page(
                "wrong.html", error.status_code, here="", heading=heading, words=words
            )
        words = f"This page could not be drawn ({type(error).__name__}); the terminal shows where."
        return self._page("wrong.html", 500, here="", heading="500: our fault", words=words)

    def routes(self) -> list[Route]:
        """Say which address shows what."""
        shown = {
            "/": self.board,
            "/run/{run}": self.run,
            "/run/{run}/doctor": self.doctor,
            "/compare": self.compare,
            "/theory": self.theory,
            "/events/board": self.board_events,
            "/events/run/{run}": self.run_events,
            "/static/{name}": self.static,
            "/report/{name:path}": self.report,
        }
        return [Route(path, page) for path, page in shown.items()]

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:
        reports = self.reports.links()
        return HTMLResponse(self.pages.render(name, reports=reports, **values), status)

    def _board_sections(self, board: BoardView) -> dict[str, Markup]:
        piece = self.pages.piece
        names = ["summary", "running", "problems", *(["listing"] if board.listing else [])]
        drawn = {name: piece("sections.html", name, board) for name in names}
        rows = (row for panel in board.panels for row in panel.rows)
        drawn |= {row.key: piece("sections.html", "row", row) for row in rows}
        return drawn | {line.key: piece("sections.html", "line", line) for line in board.lines}

    def _run_sections(self, view: RunView) -> dict[str, Markup]:
        piece = self.pages.piece
        return {
            "state": piece("pieces.html", "state", view),
            "verdicts": piece("pieces.html", "verdicts", view.doctor),
            "result": piece("pieces.html", "result", view),
        }

    def _record(self, request: Request) -> Record:
        run = request.path_params["run"]
        self.whole(until=run)
        record = self.index.find(run)
        if record is None:
            raise HTTPException(404)
        return record


def _structure(board: BoardView) -> str:
    """Name the frame of a board: what cannot be brought up to date by sections."""
    parts = [f"{panel.name}|{panel.tasks}|{len(panel.rows)}" for panel in board.panels]
    parts += [f"{line.key}|{line.name}" for line in board.lines]
    return digest(str(bool(board.total or board.broken or board.unread)), *parts)
