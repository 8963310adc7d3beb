"""Tests mirror the package file for file; what is tested elsewhere is listed with its place.

A source without a test file of its name must stand in `ELSEWHERE` with the test file that does its
work, or in `NOT_TESTED` with a reason. Both lists only shrink: an entry whose source has got a test
file of its own, or is gone, fails here too.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import depthpde

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "depthpde"

NOT_TESTED = {
    "__main__": "one call of cli.main, which tests/cli/test_main.py runs as a process",
    "shapes": "names of types, which mypy checks",
}

ELSEWHERE = {
    "isolation": dict.fromkeys(
        ("answer", "batch", "page", "question", "report", "runner", "subject", "trace", "trial"),
        "isolation/test_audit.py",
    ),
    "isolation/questions": dict.fromkeys(
        ("cache", "future", "memory", "neighbour", "packing", "padding", "table"),
        "isolation/test_faults.py",  # every question finds its seeded faults there
    ),
    "cli": {"reading_bar": "cli/test_report.py", "subject": "cli/test_doctor.py"},
    "demo": {"demo": "cli/test_demo.py"},
    "hub": {"auto_models": "hub/test_register.py"},
    "data": {"drawing": "data/test_counter.py", "task": "data/test_tasks.py"},
    "data/recipes": {
        "listops_trees": "data/recipes/test_listops.py",
        "snakes": "data/recipes/test_pathfinder.py",
    },
    "doctor": {
        "activations": "doctor/test_probe.py",
        "baseline": "doctor/test_probe.py",
        "depth_profile": "doctor/test_diagnosis.py",
        "influence": "doctor/test_probe.py",
        "loss": "doctor/test_probe.py",
        "measurements": "doctor/test_probe.py",
        "model_map": "doctor/test_probe.py",
        "single_modules": "doctor/checks/test_examination.py",
        "thresholds": "doctor/test_diagnosis.py",
        "verdict": "doctor/test_diagnosis.py",
    },
    "doctor/alarms": {"sample": "doctor/alarms/test_live.py"},
    "doctor/checks": dict.fromkeys(
        (
            "activation", "attention_change", "components", "inspection", "motion", "operations",
            "order", "proportions", "start",
        ),
        "doctor/checks/test_examination.py",  # every check finds the fault that it is for
    ),
    "doctor/pages": {
        "comparison_page": "doctor/test_comparison.py",
        "picture": "doctor/pages/test_page.py",
    },
    "doctor/conditions": dict.fromkeys(
        (
            "attention", "condition", "depth", "function", "reference", "stream", "training",
            "weights",
        ),
        "doctor/conditions/test_table.py",  # the table is walked whole
    ),
    "insertion": {
        "build": "insertion/test_insert.py",
        "compiled": "insertion/test_insert.py",
        "family": "insertion/test_insert.py",
        "insertion": "insertion/test_insert.py",
    },
    "insertion/hooks": {
        "block_hooks": "insertion/test_walk.py",
        "container": "insertion/test_insert.py",
    },
    "insertion/families": {
        "huggingface": "insertion/test_walk.py",
        "recognition": "insertion/test_insert.py",
        "torch_nn": "insertion/test_walk.py",
        "x_transformers": "insertion/test_walk.py",
    },
    "layers": {"multiscale": "layers/test_diffusion.py", "transfer": "layers/test_diffusion.py"},
    "measures": {"estimators": "measures/test_information.py", "tokens": "measures/test_rank.py"},
    "models": {"placement": "models/test_config.py", "position": "models/test_block.py"},
    "operators/diffusion": dict.fromkeys(
        ("fused", "implicit", "problem", "reference", "spectral", "stencil", "triton"),
        "operators/diffusion/test_paths.py",  # every path against the dense definition
    ),
    "operators/diffusion/device": {"edge_steps": "operators/diffusion/test_paths.py"},
    "operators/kernels": {
        **dict.fromkeys(
            ("edge_steps", "filters", "steps", "walls"),
            "operators/diffusion/test_paths.py",  # every path against the dense definition
        ),
        "attention": "operators/test_fused_attention.py",
        "gelu": "operators/test_fused_gelu.py",
        "gated_filters": "operators/diffusion/test_gated.py",
        "rows": "operators/test_average.py",
        "short_filters": "operators/test_causal_conv.py",
    },
    "theory/attention": {"smoothed_weights": "theory/test_registry.py"},
    "theory/stencil": dict.fromkeys(("maximum", "norm"), "theory/test_registry.py"),
    "theory/stabilizers": dict.fromkeys(
        ("growth_bound", "normalization", "rank_collapse", "residual", "token_clusters"),
        "theory/test_registry.py",
    ),
    "papers/measurements": {"depth": "papers/test_depth_limit.py"},
    "records": {"ungrouped": "records/test_results.py"},
    "records/index": dict.fromkeys(("named_files", "reading"), "records/index/test_index.py"),
    "report": dict.fromkeys(("face", "summary"), "report/test_site.py"),
    "runs": {"stages": "runs/test_execute.py"},
    "simulator": {"block": "simulator/test_learned.py", "system": "simulator/test_systems.py"},
    "solvers": {
        "backend": "simulator/test_simulate.py",
        "blow_up": "solvers/test_integrate.py",
        "trajectory": "solvers/test_integrate.py",
    },
    "solvers/steppers": dict.fromkeys(
        ("embedded", "fixed", "stepper"), "solvers/steppers/test_methods.py"
    ),
    "sweeps": {
        "executor": "sweeps/test_sweep.py",
        "scale": "papers/test_registry.py",
        "worker": "sweeps/test_pool.py",
    },
    "sweeps/clusters": {"ray_connection": "sweeps/clusters/test_ray_cluster.py"},
    "theory/diffusion": dict.fromkeys(
        (
            "adaptive", "cfl", "collapse", "commutation", "conservation", "energy_decay",
            "gradient_decay", "gradient_flow", "heat_kernel", "maximum_principle", "multiscale",
            "nonexpansive", "padding", "perturbation", "spectrum", "unconditional", "upwind",
        ),
        "theory/test_registry.py",  # every claim and every counter-example is measured there
    ),
}  # fmt: skip


def without_a_test(source: Path, tests: Path) -> set[str]:
    """Name the sources, without their suffix, that have no test file of their name."""
    files = (path.relative_to(source) for path in source.rglob("*.py"))
    return {
        path.with_suffix("").as_posix()
        for path in files
        if path.name != "__init__.py" and not (tests / path.parent / f"test_{path.name}").is_file()
    }


def listed() -> dict[str, str]:
    found = dict(NOT_TESTED)
    for folder, names in ELSEWHERE.items():
        found |= {f"{folder}/{name}": place for name, place in names.items()}
    return found


def test_every_source_has_a_test_of_its_name_or_a_place_where_it_is_tested():
    missing = without_a_test(SOURCE, TESTS) - set(listed())
    assert missing == set(), "write tests/…/test_NAME.py"


def test_the_lists_hold_nothing_that_has_a_test_of_its_own():
    done = set(listed()) - without_a_test(SOURCE, TESTS)
    assert done == set(), "take them off the list"


def home_of(name: str) -> str:
    """Return the module that defines a name of the flat public API, or the module of that name."""
    if (SOURCE / f"{name}.py").is_file():
        return f"depthpde.{name}"
    return str(getattr(getattr(depthpde, name), "__module__", name))


@cache
def modules_named(path: Path) -> set[str]:
    """Return what a file imports, or names in a string as to run it: modules and tests' helpers."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "depthpde":
            found |= {home_of(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} if node.value.startswith("depthpde.") else set()
    return found


@cache
def reached_by(test: Path) -> set[str]:
    """Return the sources that a test file uses, directly or through what it uses."""
    reached: set[str] = set()
    waiting = [test, test.parent / "conftest.py"]
    while waiting:
        path = waiting.pop()
        for module in modules_named(path) if path.is_file() else ():
            first, _, rest = module.partition(".")
            root = SOURCE if first == "depthpde" else TESTS / first
            source = root / f"{rest.replace('.', '/')}.py"
            if rest and str(source) not in reached:
                reached.add(str(source))
                waiting.append(source)
    return {
        Path(each).relative_to(SOURCE).with_suffix("").as_posix()
        for each in reached
        if Path(each).is_relative_to(SOURCE) and Path(each).is_file()
    }


@pytest.mark.parametrize("folder", ELSEWHERE)
def test_the_place_that_a_list_names_uses_what_it_is_said_to_test(folder):
    for name, place in ELSEWHERE[folder].items():
        assert f"{folder}/{name}" in reached_by(TESTS / place), f"{place} never comes to {name}"


def test_a_place_that_has_nothing_to_do_with_a_source_is_seen():
    assert "pages/svg" in reached_by(TESTS / "pages" / "test_svg.py")
    assert "web/states" not in reached_by(TESTS / "pages" / "test_svg.py")


def test_a_source_without_a_test_is_seen(tmp_path):
    source, tests = tmp_path / "src", tmp_path / "tests"
    for name in ("a/one.py", "a/two.py", "a/__init__.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("")
    (tests / "a").mkdir(parents=True)
    (tests / "a" / "test_one.py").write_text("")
    assert without_a_test(source, tests) == {"a/two"}
