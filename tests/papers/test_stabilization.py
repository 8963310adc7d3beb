"""Paper B's experiments, each whole, with models and data as small as can be."""

import dataclasses
import json

import pytest
import torch

from depthpde.data.catalog import load
from depthpde.models.config import ModelConfig
from depthpde.papers import architectures, depth_limit, discretization, stabilization
from depthpde.papers.ablation import (
    BOTH,
    NO_NORM,
    NO_RESIDUAL,
    SIMULATOR,
    STABILIZERS,
    SYSTEMS,
    TRANSFORMER,
    Ablation,
    Measured,
    ablation_plan,
    compute,
    label,
    shape,
)
from depthpde.papers.ablation_findings import (
    HUNDREDFOLD,
    ablation_claims,
    ablation_table,
    growths,
)
from depthpde.papers.fidelity import agreement, continuous_agreement
from depthpde.papers.observation import Observation, first_batch, measure, observe, trained_model
from depthpde.records.findings import FindingVerdict, read_findings
from depthpde.records.record import read_record
from depthpde.records.statistics.paired import holm, too_few
from depthpde.runs.presets import Preset
from depthpde.runs.run import RunConfig
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.scale import Scale
from depthpde.training.config import TrainingConfig

TINY = Preset(
    model=ModelConfig(dim=8, heads=2, hidden=16, blocks=2),
    training=TrainingConfig(updates=3, batch_size=8, warmup=1, log_every=1),
)


def tiny_plan(seeds=1, **settings):
    return ablation_plan("tiny", "Does it run?", {"listops-mini": TINY}, seeds=seeds, **settings)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, prepared):
    """Return a results folder with all eight variants of one seed."""
    made = Folders(tmp_path_factory.mktemp("results"), None, prepared)
    compute(tiny_plan(), made, workers=1, log=lambda line: None)
    return made


def test_all_variants_start_from_the_same_matrices():
    models = {run.label + str(run.model.stability): run.build() for run in tiny_plan().runs}
    assert len(models) == 8
    first = next(iter(models.values())).state_dict()
    for model in models.values():
        state = model.state_dict()
        shared = [name for name in state if name in first and "norm" not in name]
        assert len(shared) > 20
        assert all(torch.equal(state[name], first[name]) for name in shared)


def test_quick_and_mini_runs_differ_in_size_only():
    quick, mini = (stabilization.plan(scale) for scale in (Scale.QUICK, Scale.MINI))
    assert [each.label for each in quick.variants] == [each.label for each in mini.variants]
    assert len(quick.runs) == 24
    assert {run.model.blocks for run in mini.runs} == {6}
    assert len(stabilization.plan(Scale.FULL, seeds=2).runs) == 48


@pytest.mark.parametrize("scale", [Scale.MINI, Scale.FULL])
@pytest.mark.parametrize("module", [stabilization, depth_limit, discretization, architectures])
def test_as_many_seeds_as_can_be_significant_are_taken(module, scale):
    assert too_few(len(module.plan(scale).seeds)) is None


@pytest.mark.parametrize("scale", [Scale.MINI, Scale.FULL])
def test_the_seeds_of_one_task_can_bear_out_claims_that_are_corrected_together(scale):
    tested = len(architectures.TASKS) * len(SYSTEMS) * 5
    seeds = len(architectures.plan(scale).seeds)
    assert too_few(seeds, comparisons=tested) is None
    assert too_few(seeds - 1, comparisons=tested) is not None


def test_the_other_experiments_share_the_runs_of_stabilization():
    known = {run.id for run in stabilization.plan(Scale.MINI).runs}
    for module in (depth_limit, discretization):
        assert {run.id for run in module.plan(Scale.MINI).runs} <= known


def test_stabilization_ends_in_its_table_and_is_resumed(folders):
    lines = []
    findings = stabilization.answer(tiny_plan(), folders, Scale.QUICK, workers=1, log=lines.append)
    assert lines[0] == "0 runs computed, 8 were recorded before"
    assert len(findings.claims) == 14
    assert {each.verdict for each in findings.claims} == {FindingVerdict.UNDECIDED}, "one seed"
    rows = findings.tables["by stabilizer (mean ± half the 95 % interval, last layer)"]
    assert [row["variant"] for row in rows] == [each.label for each in tiny_plan().variants]
    assert read_findings(folders.results / "findings" / "stabilization.json") == findings
    assert "Transformer, no residual" in findings.text()


def test_what_was_measured_is_kept_beside_the_record(folders):
    record = next(iter(compute(tiny_plan(), folders, workers=1, log=print).values()))
    look = Observation(examples=4, informed=0, tangents=0)
    found = observe(record, folders, look)
    path = record.folder / "dynamics.json"
    assert json.loads(path.read_text()) == found
    path.write_text(json.dumps(found | {"end": "read, not measured"}))
    assert observe(record, folders, look)["end"] == "read, not measured"
    assert observe(record, folders, Observation(examples=5, informed=0, tangents=0)) != found
    path.unlink()


def test_a_measure_shows_every_layer_of_a_model(folders, prepared):
    split = load("listops-mini", "test", out=prepared)
    model = tiny_plan().runs[0].build().eval()
    found = measure(model, split, Observation(examples=4, informed=0, tangents=1))
    for name in ("cosine", "centred", "cka", "rank", "token", "size", "gradient"):
        assert len(found[name]) == 3, name
    assert found["centred"][0] == pytest.approx(1.0, abs=1e-5)
    assert found["lyapunov"] is not None
    assert all(each.grad is None for each in model.parameters())
    with torch.no_grad():
        model.encoder.blocks[0].reaction.out.bias.fill_(float("nan"))
    assert measure(model, split, Observation(examples=4, informed=0, tangents=0)) is None


def test_a_record_without_weights_cannot_be_measured(folders, tmp_path):
    source = next(iter(compute(tiny_plan(), folders, workers=1, log=print).values()))
    bare = dataclasses.replace(source, folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="must hold the weights that run"):
        trained_model(bare)


def test_a_model_agrees_with_itself_and_less_with_a_stranger(folders, prepared):
    split = load("listops-mini", "test", out=prepared)
    runs = tiny_plan(seeds=2).runs
    same, other = runs[0].build().eval(), runs[8].build().eval()
    batch = first_batch(split, 4)
    own, far = agreement(same, same, batch), agreement(same, other, batch)
    assert own["centred cosine"] == pytest.approx([1.0] * 3, abs=1e-5)
    assert own["attention cosine"] == pytest.approx([1.0] * 2, abs=1e-5)
    assert own["attention JS"] == pytest.approx([0.0] * 2, abs=1e-5)
    assert far["centred cosine"][-1] < 0.7
    assert far["attention cosine"][0] < 0.999


def test_the_continuous_equation_starts_with_the_model_and_leaves_it(folders, prepared):
    model = tiny_plan().runs[0].build().eval()
    batch = first_batch(load("listops-mini", "test", out=prepared), 4)
    found = continuous_agreement(model, batch)
    assert found["centred cosine"][0] == pytest.approx(1.0, abs=1e-5)
    assert 0.3 < found["centred cosine"][-1] < 0.9999


def fabricated(tmp_path, drift, rank, gradient, accuracy, diverged=()) -> Ablation:
    """Make up what was measured, six seeds of each variant, with a little noise.

    What diverged did so before its first point.
    """
    plan = tiny_plan(seeds=6)
    runs = {}
    for cell, run in plan.cells:
        folder = tmp_path / run.id
        folder.mkdir(exist_ok=True)
        config = {"format": 1, "id": run.id, "label": run.label, "config": run.to_dict()}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "environment.json").write_text("{}")
        stabilizer = cell.variant.split(", ")[1]
        noise = 0.01 * cell.seed
        status = "diverged" if stabilizer in diverged else "done"
        result = {"format": 1, "status": status, "test": {"accuracy": accuracy[stabilizer] + noise}}
        if accuracy[stabilizer] is NONE:
            result["test"] = None
        (folder / "result.json").write_text(json.dumps(result | {"parameters": 1, "id": run.id}))
        point = {"kind": "point", "gradient_norm": gradient[stabilizer] * (1 + noise)}
        logged = "" if stabilizer in diverged else json.dumps(point) + "\n"
        (folder / "metrics.jsonl").write_text(logged)
        at = {
            "centred": [1.0, drift[stabilizer] + noise],
            "rank": [1.0, rank[stabilizer] * (1 + noise)],
            "token": [0.0, 0.5],
            "gradient": [gradient[stabilizer] * (1 + noise), 1.0],
            "lyapunov": 0.1,
            "information": None,
        }
        seen = {"start": at, "end": at}
        runs[cell.task, cell.variant, cell.seed] = Measured(read_record(folder), seen)
    return Ablation(plan, runs)


NONE = float("nan")
"""An accuracy that there is none of."""


def by_claim(found: Ablation) -> dict[str, FindingVerdict]:
    claims = ablation_claims(found, [TRANSFORMER])
    names = ("drift", "rank", "explosion", "amplification", "accuracy")
    return {name: each.verdict for name, each in zip(names, claims, strict=True)}


def test_a_collapse_without_residuals_is_found(tmp_path):
    both = dict.fromkeys(STABILIZERS, 1.0)
    found = fabricated(
        tmp_path,
        drift=both | {BOTH: 0.8, NO_RESIDUAL: 0.0},
        rank=both | {NO_RESIDUAL: 1e-4},
        gradient=both | {NO_NORM: 1000.0, "neither": 1e-5},
        accuracy=dict.fromkeys(STABILIZERS, 20.0) | {BOTH: 60.0},
    )
    assert set(by_claim(found).values()) == {FindingVerdict.CONFIRMED}
    row = ablation_table(found)[1]
    assert row["variant"] == label(TRANSFORMER, NO_RESIDUAL)
    assert row["diverged"] == "0/6"


def test_where_nothing_happens_nothing_is_confirmed(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    verdicts = by_claim(fabricated(tmp_path, same, same, same, same))
    assert set(verdicts.values()) == {FindingVerdict.NOT_CONFIRMED}


def test_a_drift_that_leaves_something_is_not_catastrophic(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same | {BOTH: 0.9, NO_RESIDUAL: 0.4}, same, same, same)
    assert by_claim(found)["drift"] is FindingVerdict.PARTLY


def test_p_is_corrected_for_all_claims_of_the_experiment(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same, same, same | {NO_NORM: 50.0}, same)
    alone = {each.claim: each.p for each in ablation_claims(found)}
    together = {each.claim: each.p for each in stabilization.claims(found, [])}
    tested = [p for p in alone.values() if p is not None]
    assert len(tested) == 10
    assert [together[claim] for claim in alone] == holm(tested) != tested


def test_divergence_is_the_explosion_it_is_the_sign_of(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same, same, same, same, diverged=(NO_NORM,))
    claim = ablation_claims(found, [TRANSFORMER])[2]
    assert (claim.verdict, claim.n) == (FindingVerdict.CONFIRMED, 6)
    assert "no norm 6/6" in claim.finding
    backwards = growths(found, label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_NORM))
    assert backwards == [-HUNDREDFOLD] * 6
    neither = growths(found, label(TRANSFORMER, NO_NORM), label(SIMULATOR, NO_NORM))
    assert neither == [0.0] * 6, "both diverged"


def test_a_run_that_diverged_is_left_out_of_what_is_measured_after_training(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    found = fabricated(tmp_path, same, same, same, same, diverged=(NO_RESIDUAL,))
    row = ablation_table(found)[1]
    assert row["variant"] == label(TRANSFORMER, NO_RESIDUAL)
    assert row["diverged"] == "6/6"
    measured = ("centred cosine", "rank residual", "token cosine", "Lyapunov", "log10 |g_0/g_L|")
    assert {row[name] for name in (*measured, "log10 max gradient")} == {"–"}
    assert row["accuracy"] == "0.525 ± 0.02"
    claims = dict(zip(("drift", "rank"), ablation_claims(found, [TRANSFORMER]), strict=False))
    assert {name: each.n for name, each in claims.items()} == {"drift": 0, "rank": 0}
    assert any("left out" in note for note in stabilization.notes(Scale.MINI, found))


def test_a_variant_without_any_accuracy_is_not_the_next_best(tmp_path):
    same = dict.fromkeys(STABILIZERS, 0.5)
    accuracy = {BOTH: 60.0, NO_RESIDUAL: NONE, NO_NORM: 50.0, "neither": 20.0}
    found = fabricated(tmp_path, same, same, same, accuracy)
    claim = ablation_claims(found, [TRANSFORMER])[-1]
    assert claim.finding == "test accuracy with both is +10.0 points above the next best, no norm"


def test_depth_converges_to_its_limit_and_not_without_residuals(folders):
    wanted = (label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_RESIDUAL))
    whole = tiny_plan(systems=(TRANSFORMER,))
    part = dataclasses.replace(
        whole, variants=[each for each in whole.variants if each.label in wanted]
    )
    findings = depth_limit.answer(part, folders, Scale.QUICK, workers=1, log=lambda line: None)
    assert [each.verdict for each in findings.claims] == [FindingVerdict.UNDECIDED] * 4, "one seed"
    rows = findings.tables["relative distance from the limit, by depth"]
    orders = {(row["variant"], row["step"], row["weights"]): float(row["order"]) for row in rows}
    standard = label(TRANSFORMER, BOTH)
    assert orders[standard, "lie", "trained"] == pytest.approx(1.0, abs=0.25)
    assert orders[standard, "strang", "trained"] == pytest.approx(2.0, abs=0.4)
    far = {(row["variant"], row["weights"]): row["L = 64"] for row in rows if row["step"] == "lie"}
    assert float(far[standard, "trained"]) < 0.2
    assert float(far[label(TRANSFORMER, NO_RESIDUAL), "trained"]) > 0.2


def test_schemes_keep_their_order_on_a_transformer(folders):
    whole = tiny_plan(systems=(TRANSFORMER,))
    part = dataclasses.replace(whole, variants=whole.variants[:1])
    findings = discretization.answer(part, folders, Scale.QUICK, workers=1, log=lambda line: None)
    rows = next(iter(findings.tables.values()))
    orders = {row["scheme"]: float(row["order"]) for row in rows}
    for method, order in {"euler": 1, "lie": 1, "strang": 2, "heun": 2, "rk4": 4}.items():
        assert orders[method] == pytest.approx(order, abs=0.25 * order), method
    stiff = {row["scheme"]: row for row in list(findings.tables.values())[1]}
    assert float(stiff["euler"]["log10 energy ratio"]) > 2
    assert float(stiff["backward_euler"]["log10 energy ratio"]) < 1


def test_padding_adds_no_roughness(prepared):
    batch = first_batch(load("listops-mini", "test", out=prepared), 1)
    length = int(batch.valid_mask.sum())
    bare, padded = (
        dataclasses.replace(
            batch, tokens=batch.tokens[:, :end], valid_mask=batch.valid_mask[:, :end]
        )
        for end in (length, None)
    )
    assert padded.tokens.shape[1] > length
    model = tiny_plan().runs[0].build().double().eval()
    found = discretization.roughening(model, padded)
    assert found == pytest.approx(discretization.roughening(model, bare), rel=1e-9)


def test_a_task_whose_files_are_missing_is_told_before_anything_runs(prepared, tmp_path):
    plan = ablation_plan("tiny", "?", {"text-mini": TINY}, seeds=1)
    with pytest.raises(FileNotFoundError, match="text-mini needs the IMDb reviews"):
        compute(plan, Folders(tmp_path, tmp_path, prepared), workers=1, log=lambda line: None)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_failed_before_is_tried_again(prepared, tmp_path):
    plan = tiny_plan(systems=(TRANSFORMER,))
    run = plan.runs[0]
    folder = tmp_path / "runs" / run.id
    folder.mkdir(parents=True)
    said = {"format": 1, "id": run.id, "label": run.label, "config": run.to_dict()}
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "status.json").write_text(json.dumps({"state": "failed", "error": "no memory"}))
    lines = []
    compute(plan, Folders(tmp_path, None, prepared), workers=1, log=lines.append)
    assert lines[-1] == "4 runs computed, 0 were recorded before"


def test_runs_that_fail_are_told_and_nothing_is_judged(prepared, tmp_path):
    plan = tiny_plan(systems=(TRANSFORMER,))
    for run in plan.runs:
        folder = tmp_path / "runs" / run.id
        (folder / "status.json").mkdir(parents=True)  # so that no run can say how it stands
    with pytest.raises(ValueError, match=r"all 4 runs .* got 4 that failed, the first because: .*"):
        compute(plan, Folders(tmp_path, None, prepared), workers=1, log=lambda line: None)


def test_the_architectures_are_what_they_are_called():
    runs = {run.task: run for run in architectures.plan(Scale.MINI, seeds=1).runs}
    assert set(runs) == {"mnist-mini", "wikitext2-mini"}
    vision = [
        run for run in architectures.plan(Scale.MINI, seeds=1).runs if run.task == "mnist-mini"
    ]
    built = {type(run.build()).__name__ for run in vision}
    assert built == {"VisionTransformer", "Simulator"}
    assert {(run.model.patch, run.model.grid, run.model.prefix) for run in vision} == {
        (2, (7, 7), 1)
    }
    assert type(runs["wikitext2-mini"].build()).__name__ == "LanguageSimulator"
    assert architectures.architecture_of("mnist-mini") == "vision Transformer"
    looks = {task: run.training.evaluate_every for task, run in runs.items()}
    assert looks == {"mnist-mini": 100, "wikitext2-mini": 400}


def test_both_systems_are_of_one_size_but_for_the_diffusivity():
    sizes = {}
    for system in SYSTEMS:
        run: RunConfig = tiny_plan(systems=(system,)).runs[0]
        sizes[system] = sum(each.numel() for each in run.build().parameters())
    assert sizes[SIMULATOR] - sizes[TRANSFORMER] == 2 * 8, "one number a feature and block"


def test_a_whole_task_has_a_larger_model():
    made = shape(Scale.FULL, ["listops"])
    assert made["listops"].model.blocks == 6
    assert made["listops"].training.updates == 10_000


def test_refuses_to_answer_by_a_part_of_what_is_recorded(tmp_path):
    discretization.plan(Scale.QUICK, seeds=4).write(tmp_path)
    message = "`seeds` must be no fewer than .* holds for 'discretization', 4, got 2"
    with pytest.raises(ValueError, match=message):
        discretization.reproduce(tmp_path, scale="quick", seeds=2)
    with pytest.raises(ValueError, match="'discretization' must go on with the grid in"):
        discretization.reproduce(tmp_path, scale="mini")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("module", [stabilization, depth_limit, discretization, architectures])
def test_refuses_an_unknown_scale(module, tmp_path):
    with pytest.raises(ValueError, match="`scale` must be one of quick, mini, full, got 'huge'"):
        module.reproduce(tmp_path, scale="huge")
