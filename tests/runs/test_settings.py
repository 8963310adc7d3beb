import json
import sys

import pytest

from depthpde.data.tasks import TASKS
from depthpde.runs.presets import PRESETS, preset
from depthpde.runs.settings import build_run, describe, read_change, read_settings, usual_preset

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


def written(tmp_path, text, name="run.json"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "task"),
    [(name, task) for name, tasks in PRESETS.items() for task in tasks],
)
def test_what_is_printed_is_read_as_the_same_run(tmp_path, name, task):
    run = build_run(task, preset_name=name, settings={"seed": 3})
    path = written(tmp_path, describe(run))
    again = build_run(file=path)
    assert (again, again.id) == (run, run.id)


def test_the_config_of_a_runs_own_folder_is_read_too(tmp_path, run):
    output = {"format": 1, "id": run.id, "label": run.label, "config": run.to_dict()}
    assert build_run(file=written(tmp_path, json.dumps(output))).id == run.id


def test_a_mini_task_takes_its_preset_by_itself():
    found, wanted = build_run("text-mini"), preset("mini", "text-mini")
    assert found.training == wanted.training
    assert found.model == wanted.model.fit(TASKS["text-mini"])


def test_no_preset_at_all_is_every_settings_own_default():
    run = build_run("mnist", preset_name="none")
    assert (run.model.dim, run.training.updates) == (64, 1000)


def test_the_later_word_wins(tmp_path):
    path = written(tmp_path, json.dumps({"model": {"dim": 48}, "training": {"updates": 70}}))
    settings = {"training.updates": 80, "training.batch_size": 4}
    run = build_run("text-mini", file=path, settings=settings, changes=["training.batch_size=5"])
    assert (run.model.dim, run.training.updates, run.training.batch_size) == (48, 80, 5)
    assert run.model.hidden == preset("mini", "text-mini").model.hidden


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "task: text-mini\ntraining: {updates: 70}\nmodel:\n  positions: [after_ffn]\n"),
        ("a.yml", "task: text-mini\ntraining: {updates: 70}\nmodel: {positions: [after_ffn]}\n"),
        ("a.toml", 'task = "text-mini"\n[training]\nupdates=70\n[model]\npositions=["after_ffn"]'),
        ("a.json", '{"task": "text-mini", "training": {"updates": 70}, '
                   '"model": {"positions": ["after_ffn"]}}'),
    ],
)  # fmt: skip
def test_the_same_settings_in_every_notation_are_the_same_run(tmp_path, name, text):
    run = build_run(file=written(tmp_path, text, name))
    wanted = {"training.updates": 70, "model.positions": ["after_ffn"]}
    assert run.id == build_run("text-mini", settings=wanted).id


@pytest.mark.parametrize("text", ["1e-3", "1.e-3", "1.0e-3", "0.001", "+1E-3"])
def test_a_rate_in_yaml_may_be_written_as_people_write_it(tmp_path, text):
    path = written(tmp_path, f"training: {{learning_rate: {text}}}\nmodel: {{dim: 16}}", "a.yaml")
    assert build_run("text-mini", file=path).training.learning_rate == 0.001


def test_a_layers_name_may_be_given_settings_of_its_own():
    run = build_run("text-mini", changes=["model.layer.steps=3", 'model.positions=["after_ffn"]'])
    assert (run.model.layer.kind, run.model.layer.steps) == ("diffusion", 3)


def test_a_layer_of_another_kind_replaces_what_was_said_of_the_first(tmp_path):
    path = written(tmp_path, json.dumps({"model": {"layer": {"kind": "diffusion", "steps": 3}}}))
    run = build_run("text-mini", file=path, changes=["model.layer.kind=multiscale"])
    assert (run.model.layer.kind, run.model.layer.steps) == ("multiscale", None)


def test_a_position_alone_may_be_named_without_a_list():
    one = build_run("text-mini", changes=["model.positions=after_ffn"])
    assert one.id == build_run("text-mini", changes=['model.positions=["after_ffn"]']).id


def test_a_warmup_never_asked_for_is_shortened_with_the_run_and_one_asked_for_is_not():
    assert build_run("text-mini", settings={"training.updates": 30}).training.warmup == 3
    assert build_run("text-mini", settings={"training.updates": 700}).training.warmup == 50
    with pytest.raises(ValueError, match="`warmup` must be less than `updates` = 30, got 40"):
        build_run("text-mini", settings={"training.updates": 30}, changes=["training.warmup=40"])


def test_pretraining_is_added_changed_and_taken_away():
    added = build_run("text-mini", settings={"pretraining.objective": "causal"})
    assert added.pretraining.objective == "causal"
    changed = build_run("text", preset_name="amos-2023", changes=["pretraining.share=0.3"])
    assert (changed.pretraining.share, changed.pretraining.warmup) == (0.3, 5000)
    gone = build_run("text", preset_name="amos-2023", settings={"pretraining": None})
    assert gone.pretraining is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=1e-3", 1e-3), ("a=null", None), ("a=after_ffn", "after_ffn"), ("a=[1,2]", [1, 2]),
     ("a=true", True), ("a=x=y", "x=y"), ("a=", "")],
)  # fmt: skip
def test_a_value_is_json_or_else_text(text, value):
    assert read_change(text) == ("a", value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "listops-mni"}, "`task` must be one of.*did you mean 'listops-mini'"),
        ({"task": None}, "`task` must be named"),
        ({"preset_name": "minni"}, "did you mean 'mini'"),
        ({"changes": ["model.dimm=3"]}, "did you mean 'dim'"),
        ({"changes": ["training.lerning_rate=3"]}, "did you mean 'learning_rate'"),
        ({"changes": ["trainng.updates=3"]}, r"`setting` must be one of .*got 'trainng.updates'"),
        ({"changes": ["model.dim"]}, "must be written NAME=VALUE"),
        ({"changes": ["=3"]}, "must be written NAME=VALUE"),
        ({"changes": ["model.dim=abc"]}, "`dim` must be a whole number"),
        ({"changes": ["model=3"]}, "`model` must be a mapping of settings, got 3; name them"),
        ({"changes": ["training=5"]}, "`training` must be a mapping of settings, got 5"),
        ({"changes": ["simulator=5"]}, "`simulator` must be a mapping of settings, got 5"),
        ({"changes": ["model.layer=difusion"]}, "did you mean 'diffusion'"),
        ({"changes": ["model.positions=[\"after_embeding\"]"]}, "did you mean 'after_embedding'"),
        ({"changes": ["pretraining.objectiv=masked"]}, "did you mean 'objective'"),
        ({"changes": ["protocol=strikt"]}, "did you mean 'strict'"),
        ({"changes": ["model.positions=3"]}, r'got 3; write a list, such as \["after_embedding"\]'),
        ({"changes": ["model.layer.bound=9"]}, "`bound` must lie in"),
        ({"changes": ["model.grid=3"]}, "two whole numbers, got 3"),
    ],
)  # fmt: skip
def test_refuses(settings, message):
    with pytest.raises(ValueError, match=message):
        build_run(**({"task": "text-mini"} | settings))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json must be JSON, but"),
        ("a.toml", "a = ", "a.toml must be TOML, but"),
        ("a.yaml", "a: [", "a.yaml must be YAML, but"),
        ("a.json", "[1]", "must hold settings by name, got list"),
        ("a.json", '{"format": 2, "config": {}}', "must be of format 1, got 2: another version"),
        ("a.json", '{"format": 1, "config": 3}', "must hold settings under `config`, got 3"),
        ("a.yaml", "training:", "`training` must be a mapping of settings, got None; name"),
        ("a.json", '{"model": 3}', "`model` must be a mapping of settings, got 3"),
        ("a.json", '{"modle": {}}', "did you mean 'model'"),
        ("a.txt", "", r"`config's ending` must be one of \.json.*got '\.txt'"),
    ],
)
def test_refuses_a_file(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_settings(written(tmp_path, text, name))


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; write it with --print_config"):
        read_settings(tmp_path / "none.json")


def test_refuses_a_file_of_another_task(tmp_path):
    path = written(tmp_path, describe(build_run("image-mini")))
    with pytest.raises(ValueError, match=r"`task` must be that of .*'image-mini', got 'text-mini'"):
        build_run("text-mini", file=path)


def test_yaml_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match="needs PyYAML to be read; use pip install pyyaml"):
        read_settings(written(tmp_path, "a: 1", "a.yaml"))


def test_a_full_task_without_a_preset_takes_the_usual_one():
    assert usual_preset("text") == "nystrom-2021"
    assert usual_preset("text-mini") == "mini"
    assert usual_preset("mnist") == "none"
    assert build_run("text") == build_run("text", preset_name="nystrom-2021")
