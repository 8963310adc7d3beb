from depthpde.records.evidence import gather, over_all, placed_at
from depthpde.records.results import read_results
from depthpde.report.variant_section import task_curves, write_variant_section
from report import synthesis


def article_of(evidence, variant):
    return write_variant_section(
        evidence, variant, over_all(evidence).get(variant), placed_at(evidence)
    )


def read(results):
    found = read_results(results)
    return gather(found.grids["placement"], found.records)


def test_a_position_has_its_number_its_curves_and_what_it_learned(evidence):
    found = article_of(evidence, "after_attention")
    assert (found.number, found.role) == (5, "ours")
    assert list(found.figures) == [
        "curve-listops-mini", "curve-text-mini", "ratios", "transfer", "bands",
    ]  # fmt: skip
    assert found.summary.startswith("−")
    assert "block 1 · after attention" in found.figures["bands"].caption


def test_a_control_has_curves_alone_and_no_number(evidence):
    found = article_of(evidence, "depthwise conv")
    assert (found.number, found.role) == (None, "control")
    assert set(found.figures) == {"curve-listops-mini", "curve-text-mini"}


def test_what_was_measured_stands_for_a_layer_without_a_formula(results):
    for run in read(results).records("depthwise conv"):
        synthesis.write_probe(results, run.id)
    found = article_of(read(results), "depthwise conv").figures
    assert "as measured" in found["transfer"].caption
    assert "after embedding; measured" in found["bands"].caption


def test_a_variant_without_runs_says_so_and_draws_nothing(results):
    for run in read(results).records("after_attention"):
        (run.folder / "result.json").unlink()
    found = article_of(read(results), "after_attention")
    assert found.summary == "no pair of runs to show yet"
    assert found.figures == {}


def test_runs_that_were_validated_once_have_no_curve(tmp_path):
    """Two ticks at the edge of an empty plane stood for one."""
    synthesis.write_placement(tmp_path, tasks=["text-mini"], variants=["after_ffn"], seeds=2)
    shown = {"after_ffn": "ours"}
    assert "line-ours" in task_curves(read(tmp_path), "text-mini", shown)
    for path in tmp_path.glob("runs/*/metrics.jsonl"):
        *_, last = (line for line in path.read_text().splitlines() if "validation" in line)
        path.write_text(last + "\n")
    assert task_curves(read(tmp_path), "text-mini", shown) == ""
