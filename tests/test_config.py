"""Settings: what is declared is checked, nested, written and read back; old ids stay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest

from depthpde.config import Natural, Positive, Range, Settings, check_keys, plain

RUNS = sorted((Path(__file__).parents[1] / "results" / "runs").glob("*/config.json"))


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner(Settings):
    share: Annotated[float, Range(0.0, 1.0, "use a share")] = 0.5
    count: Natural = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer(Settings):
    size: Positive
    colour: Colour | str = Colour.RED
    other: Colour | str | None = None
    bright: bool = False
    inner: Inner | Mapping[str, Any] = field(default_factory=Inner)
    table: Mapping[str, Inner] = field(default_factory=dict)
    sides: tuple[int, ...] = ()

    def check(self) -> None:
        if self.bright and self.size > 9:
            raise ValueError("`bright` must be False beyond 9")


def test_names_become_choices_numbers_floats_and_mappings_configs():
    made = Outer(size=3, colour="green", inner={"share": 1})
    assert made.colour is Colour.GREEN
    assert made.inner == Inner(share=1.0)
    assert isinstance(made.inner.share, float)
    assert made.other is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 0}, "`size` must be at least 1, got 0"),
        ({"size": True}, "`size` must be a whole number"),
        ({"size": 1, "colour": "gren"}, "did you mean 'green'"),
        ({"size": 1, "bright": 1}, "`bright` must be True or False, got 1"),
        ({"size": 1, "inner": {"share": 2}}, "use a share"),
        ({"size": 1, "inner": {"share": None}}, "`share` must be a finite number"),
        ({"size": 1, "inner": {"count": -1}}, "`count` must be a whole number of at least 0"),
        ({"size": 1, "inner": {"shares": 1}}, "`inner key` must be one of.*did you mean 'share'"),
        ({"size": 10, "bright": True}, "beyond 9"),
        ({"colour": "red"}, "`config` must have size, got colour"),
        ({}, "`config` must have size, got nothing"),
    ],
)  # fmt: skip
def test_what_is_not_declared_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Outer.from_dict(settings)


def test_only_a_mapping_is_read():
    with pytest.raises(ValueError, match=r"`config`.*got 3"):
        Outer.from_dict(3)
    with pytest.raises(ValueError, match="`point` must be a mapping"):
        check_keys("point", Inner, [])


def test_the_plain_form_is_json_in_the_order_of_the_fields_and_reads_back():
    made = Outer(size=3, other="red", sides=(1, 2))
    values = made.to_dict()
    assert list(values) == ["size", "colour", "other", "bright", "inner", "table", "sides"]
    assert values["inner"] == {"share": 0.5, "count": 0}
    assert json.loads(json.dumps(values)) == values | {"sides": [1, 2]}
    assert Outer.from_dict(values | {"sides": (1, 2)}) == made
    assert plain({"a": Inner(), "b": Colour.RED}) == {"a": {"share": 0.5, "count": 0}, "b": "red"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Several(Settings):
    shares: tuple[Annotated[float, Range(0.0, 1.0)], ...] = ()
    inners: tuple[Inner, ...] | None = None
    pair: tuple[int, int] | None = None


def test_members_of_a_tuple_are_read_one_by_one_and_lists_become_tuples():
    made = Several.from_dict({"shares": [0, 1], "inners": [{"count": 2}], "pair": [3, 4]})
    assert made == Several(shares=(0.0, 1.0), inners=(Inner(count=2),), pair=[3, 4])
    assert all(type(each) is float for each in made.shares)
    assert Several.from_dict(made.to_dict()) == made
    with pytest.raises(ValueError, match=r"`shares`.*\[0, 1\].*got 2"):
        Several(shares=[2])
    with pytest.raises(ValueError, match=r"`inners`.*got 3"):
        Several(inners=[3])


def test_a_config_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Outer(size=3).size = 4  # type: ignore[misc]


def test_the_ids_and_the_plain_form_of_every_recorded_run_are_those_of_the_record():
    from depthpde.runs.run import RunConfig

    assert len(RUNS) > 1000
    # one run for each distinct set of settings but for its seed: the others differ by that alone
    kinds: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in RUNS:
        output = json.loads(path.read_text(encoding="utf-8"))
        config = output["config"]
        training = config["training"] | {"seed": 0}
        kinds[json.dumps(config | {"seed": 0, "training": training})] = (path, output)
    assert len(kinds) > 100
    for path, output in kinds.values():
        run = RunConfig.from_dict(output["config"])
        assert run.id == output["id"] == path.parent.name
        written = json.loads(json.dumps(run.to_dict()))
        assert json.dumps(_as_recorded(written, output["config"])) == json.dumps(output["config"])


def _as_recorded(written: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """Leave out settings that came later, which must be None: what is None is in no name."""
    assert all(each is None for name, each in written.items() if name not in recorded)
    return {
        name: _as_recorded(each, recorded[name])
        if isinstance(each, dict) and isinstance(recorded[name], dict)
        else each
        for name, each in written.items()
        if name in recorded
    }
