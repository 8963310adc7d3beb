"""The thresholds of docs/doctor.md are those that are used."""

import json
from importlib.resources import files
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")


def test_the_page_tells_the_thresholds_that_are_used():
    output = json.loads((files("depthpde.doctor") / "thresholds.json").read_text(encoding="utf-8"))
    table = PAGE.split("## The conditions")[1].split("## Does it find")[0]
    for condition, row in output["thresholds"].items():
        (line,) = (line for line in table.splitlines() if line.startswith(f"| {condition} |"))
        known = [row["ill"]] if row["ill"] > 0 and row["watch"] != row["ill"] else []
        assert all(f"{value:g}".replace("e-0", "e-") in line for value in known), condition
