import json
import re

import pytest

from depthpde.simulator.page import render_system
from depthpde.simulator.simulate import simulate
from depthpde.simulator.system import Known, View
from depthpde.simulator.systems import SYSTEMS
from depthpde.simulator.work_precision import WorkPoint


def page(name, points=(), **parameters):
    system = SYSTEMS[name].vary(**parameters)
    path = simulate(system.equation, system.u0, system.times[:6])
    known = (Known(quantity="<b> & co", predicted=1.0, computed=1.0, tolerance=0.1),)
    return render_system(system, path, known, points)


@pytest.mark.parametrize(
    ("name", "parameters", "view"),
    [
        ("clustering", {"tokens": 6, "dim": 5}, View.TOKENS),
        ("fisher", {}, View.FIELD),
        ("turing_2d", {"side": 8}, View.IMAGE),
    ],
)
def test_a_page_holds_its_numbers_and_needs_no_network(name, parameters, view):
    text = page(name, **parameters)
    assert not re.search(r"(src|href)=|https?:|@import|url\(", text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert data["view"] == view
    assert len(data["times"]) == 6
    assert ('id="play"' in text) == (view is not View.FIELD)
    if view is View.TOKENS:
        assert len(data["frames"][0]) == 6
        assert len(data["frames"][0][0]) == 3, "of five coordinates three are shown"


def test_what_people_wrote_is_escaped():
    text = page("equiangular")
    assert "&lt;b&gt; &amp; co" in text


def test_a_work_diagram_leaves_out_what_failed():
    points = [
        WorkPoint(method="lie", setting=4, evaluations=0, error=float("inf")),
        WorkPoint(method="auto", setting=1e-3, evaluations=20, error=1e-4),
    ]
    data = json.loads(re.search(r'id="data">(.*?)</script>', page("fisher", points), re.S)[1])
    work = next(curve for curve in data["curves"] if curve["id"] == "work")
    assert [series["name"] for series in work["series"]] == ["auto"]
