from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.records.index.index import Index
from depthpde.records.record import METRICS, RESULT, STATUS
from depthpde.web.live import ServerEvent, read_tail, thin
from depthpde.web.runs import Curves
from web.conftest import Site, serving


def test_an_event_is_one_line_of_data_whatever_it_holds() -> None:
    text = ServerEvent("metrics", {"name": "a\nb\r\u2028"}, "12").encode().decode()
    assert text.startswith("event: metrics\ndata: ")
    assert text.endswith("id: 12\n\n")
    assert len(text.splitlines()) == 4


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"a": 1}\n{"a": ')
    first = read_tail(path, 0)
    assert first.lines == [{"a": 1}]
    with path.open("a") as stream:
        stream.write("2}\n")
    assert read_tail(path, first.offset).lines == [{"a": 2}]


def test_lines_that_are_no_objects_are_counted_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"a": 1}\nnot json\n[1]\n\xff\xfe\n\n{"a": 2}\n')
    found = read_tail(path, 0)
    assert [each["a"] for each in found.lines] == [1, 2]
    assert found.bad == 3


def test_a_number_that_json_does_not_know_becomes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"loss": NaN, "rate": Infinity}\n')
    (line,) = read_tail(path, 0).lines
    assert line == {"loss": None, "rate": None}
    ServerEvent("metrics", line).encode()


@pytest.mark.parametrize("offset", [10_000, -5])
def test_a_file_that_got_shorter_is_read_from_its_start(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "lines"
    path.write_text('{"a": 1}\n')
    assert read_tail(path, offset).lines == [{"a": 1}]


def test_no_file_holds_nothing() -> None:
    assert read_tail(None, 7) == ([], 7, 0)


@pytest.mark.parametrize("count", [0, 1, 10, 1500, 1501, 3000, 40_000])
def test_thinning_keeps_both_ends_and_the_order(count: int) -> None:
    points = [{"update": k} for k in range(count)]
    kept = thin(points)
    assert len(kept) <= 1501
    assert [each["update"] for each in kept] == sorted(each["update"] for each in kept)
    assert kept[:1] == points[:1]
    assert kept[-1:] == points[-1:]


def running(results: Path) -> Path:
    """Turn one run of a folder into one that is under way, at its start."""
    folder = sorted((results / "runs").iterdir())[0]
    (folder / RESULT).unlink()
    (folder / METRICS).write_text("")
    beat(folder, 0)
    return folder


def beat(folder: Path, update: int) -> None:
    status = {"state": "running", "update": update, "updates": 800, "heartbeat": time.time()}
    write_json(folder / STATUS, status)


def learn(folder: Path, update: int) -> None:
    point = {"kind": "point", "update": update, "loss": 2.0, "accuracy": 30.0}
    with (folder / METRICS).open("a") as stream:
        stream.write(json.dumps(point) + "\n")


def test_curves_tell_each_line_once_and_go_on_where_a_page_was_cut_off(results: Path) -> None:
    folder, index = running(results), Index(results)
    index.look()
    curves = Curves(index, folder.name)
    assert [each.name for each in curves.look()] == ["restart"]
    learn(folder, 1)
    (event,) = curves.look()
    assert [each["update"] for each in event.data] == [1]
    assert curves.look() == []
    learn(folder, 2)
    later = Curves(index, folder.name, event.id)
    (event,) = later.look()
    assert [each["update"] for each in event.data] == [2]


def test_curves_start_again_when_the_run_did(results: Path) -> None:
    folder, index = running(results), Index(results)
    index.look()
    for update in range(5):
        learn(folder, update)
    curves = Curves(index, folder.name, "not a number")
    curves.look()
    (folder / METRICS).write_text("")
    learn(folder, 7)
    restart, event = curves.look()
    assert restart.name == "restart"
    assert [each["update"] for each in event.data] == [7]


class Listener:
    """Reads a stream of events in a thread."""

    def __init__(self, site: Site, path: str) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
        self.line.request("GET", path)
        self.answer = self.line.getresponse()
        self.events: list[tuple[str, object]] = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        name = ""
        for raw in self.answer:
            text = raw.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                self.events.append((name, json.loads(text.removeprefix("data: "))))

    def end(self) -> None:
        """Wait until the server has ended the stream."""
        self.thread.join(timeout=30)
        assert not self.thread.is_alive()
        self.answer.close()
        self.line.close()

    def wait(self, name: str) -> object:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for seen, data in self.events:
                if seen == name:
                    return data
            time.sleep(0.02)
        raise AssertionError(f"no event {name!r} in {[each for each, _ in self.events]}")


def test_a_run_under_way_is_told_as_it_goes_and_ends_with_its_result(results: Path) -> None:
    folder = running(results)
    result = json.loads((sorted((results / "runs").iterdir())[1] / RESULT).read_text())
    with serving(results) as site:
        heard = Listener(site, f"/events/run/{folder.name}")
        assert heard.answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        heard.wait("restart")
        learn(folder, 1)
        assert heard.wait("metrics")[0]["update"] == 1  # type: ignore[index]
        heard.events.clear()
        beat(folder, 400)
        assert "400 of 800" in heard.wait("sections")["state"]  # type: ignore[index]
        heard.events.clear()
        write_json(folder / RESULT, result)
        heard.wait("end")
        drawn = {name: part for kind, data in heard.events if kind == "sections"
                 for name, part in data.items()}  # type: ignore[attr-defined]  # fmt: skip
        assert "None yet" not in drawn["result"]
        assert f"{result['test']['accuracy']:.1f}" in drawn["result"]
    heard.end()  # the server ended, and took its streams with it


def test_the_board_sends_the_rows_that_changed_and_no_others(results: Path) -> None:
    folder = running(results)
    with serving(results) as site:
        heard = Listener(site, "/events/board")
        first = heard.wait("sections")  # what changed before the stream began is there too
        assert isinstance(first, dict)
        assert {"summary", "running", "problems"} < first.keys()
        heard.events.clear()
        write_json(folder / STATUS, {"state": "failed", "error": "out of memory", "update": 3})
        sections = heard.wait("sections")
        assert isinstance(sections, dict)
        rows = [name for name in sections if name.startswith("row-")]
        assert len(rows) == 1
        assert "failed" in sections[rows[0]]
        assert "out of memory" in sections["problems"]
    heard.end()


def test_a_stream_of_an_unknown_run_is_not_there(site: Site) -> None:
    assert site.get("/events/run/nobody")[0] == 404


def test_a_number_beyond_all_bounds_ends_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"a": 1e999, "b": 1%s, "c": 12, "d": -1.5}\n' % ("0" * 400))
    (line,) = read_tail(path, 0).lines
    assert line == {"a": None, "b": None, "c": 12, "d": -1.5}
    ServerEvent("metrics", line).encode()
