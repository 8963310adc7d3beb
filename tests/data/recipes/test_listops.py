import tarfile
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.listops import (
    LRA,
    MINI,
    WORDS,
    Grammar,
    baselines,
    decode,
    generate,
    read_tsv,
    value_of,
)
from depthpde.data.recipes.listops_trees import tokenise

REFERENCE = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: int(median(values)),
    "[SM": lambda values: sum(values) % 10,
}
TREES = st.recursive(
    st.integers(0, 9),
    lambda inner: st.tuples(
        st.sampled_from(sorted(REFERENCE)), st.lists(inner, min_size=1, max_size=9)
    ),
    max_leaves=40,
)


def value(tree) -> int:
    return tree if isinstance(tree, int) else REFERENCE[tree[0]]([value(each) for each in tree[1]])


def written(tree) -> str:
    if isinstance(tree, int):
        return str(tree)
    text = tree[0]
    for each in tree[1]:
        text = f"( {text} {written(each)} )"
    return f"( {text} ] )"


def symbols_of(text: str) -> np.ndarray:
    line = np.frombuffer(text.encode(), dtype=np.uint8)
    room = np.empty(len(line), dtype=np.uint8)
    count = tokenise(line, room)
    assert count >= 0, text
    return room[:count]


@pytest.fixture(scope="module")
def many():
    return generate(20_000, 0, workers=2)


@given(TREES)
@settings(deadline=None)
def test_the_evaluator_agrees_with_python(tree) -> None:
    assert value_of(symbols_of(written(tree))) == value(tree)


def test_the_example_of_the_paper_is_five() -> None:
    text = "[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]"
    assert value_of(symbols_of(text)) == 5
    assert decode(symbols_of(text)) == text


def test_the_evaluator_agrees_with_the_original_test_sets(official: Path) -> None:
    checked = 0
    with tarfile.open(official / "listops" / "nyu_spinn_listops_test.tar.xz") as tar:
        for member in tar:
            if not member.name.endswith(".tsv"):
                continue
            for line in tar.extractfile(member).read().decode().splitlines():
                label, expression = line.split("\t")
                if "FIRST" in expression or "LAST" in expression:
                    continue  # not in the arena's language
                checked += 1
                assert value_of(symbols_of(expression)) == int(label)
    assert checked > 20_000


@pytest.mark.parametrize(
    "symbols", [[], [14], [10], [10, 1], [10, 14], [1, 2], [10, 1, 14, 14], [10, 1, 14, 3]]
)
def test_what_is_no_expression_has_no_value(symbols: list[int]) -> None:
    assert value_of(np.array(symbols, dtype=np.uint8)) is None


@given(st.lists(st.integers(0, 14), max_size=60))
@settings(deadline=None)
def test_any_symbols_are_evaluated_or_refused(symbols: list[int]) -> None:
    found = value_of(np.array(symbols, dtype=np.uint8))
    assert found is None or 0 <= found <= 9


def test_generated_labels_are_the_values_and_lengths_keep_their_bounds(many) -> None:
    expressions, labels = many
    low, high = LRA.lengths
    assert low <= expressions.lengths.min() <= expressions.lengths.max() <= high
    starts = expressions.offsets
    for each in range(0, 20_000, 400):
        assert value_of(expressions.tokens[starts[each] : starts[each + 1]]) == labels[each]


def test_the_distribution_is_the_published_one(many) -> None:
    expressions, _ = many
    # Deciles of 20,000 trees drawn by the original program; their own error is about 10.
    deciles = np.percentile(expressions.lengths, range(10, 100, 10))
    assert np.abs(deciles - [579, 661, 753, 851, 962, 1087, 1235, 1408, 1651]).max() < 35
    roots = np.bincount(expressions.tokens[expressions.offsets[:-1]], minlength=15)
    assert np.abs(roots[10:14] / 20_000 - 0.25).max() < 0.02


def test_the_trivial_baselines_are_the_published_ones() -> None:
    found = baselines(*generate(100_000, 0, workers=2))
    wanted = {"majority": 16.9, "root_operator": 36.1, "root_digits": 42.0}
    assert {
        name: abs(found[name] - value) <= 0.5 for name, value in wanted.items()
    } == dict.fromkeys(wanted, True)
    assert found["root_applied"] > found["root_digits"]


def test_the_bytes_do_not_depend_on_the_workers_and_a_larger_count_adds_at_the_end() -> None:
    one, labels = generate(300, 7, workers=1)
    two, others = generate(400, 7, workers=3)
    assert (two.tokens[: len(one.tokens)] == one.tokens).all()
    assert (others[:300] == labels).all()
    assert (generate(300, 8)[0].tokens[:300] != one.tokens[:300]).any()


def test_no_expression_comes_twice() -> None:
    expressions, _ = generate(3_000, 0, grammar=Grammar(lengths=(4, 5)))
    starts = expressions.offsets
    seen = {expressions.tokens[starts[each] : starts[each + 1]].tobytes() for each in range(3_000)}
    assert len(seen) == 3_000


def shape_of(symbols: np.ndarray) -> tuple[int, set[int]]:
    """Return the depth of the deepest node, the root being at 1, and all argument counts."""
    depth, counts, opened = 1, set(), [0]
    for symbol in symbols.tolist():
        if symbol == 14:
            counts.add(opened.pop())
            continue
        opened[-1] += 1
        depth = max(depth, len(opened))
        if symbol >= 10:
            opened.append(0)
    return depth, counts


@pytest.mark.parametrize(
    "grammar",
    [MINI, Grammar(lengths=(4, 90), operator_share=0.4, max_depth=3, max_arguments=7)],
    ids=["mini", "flat"],
)
def test_trees_keep_the_depth_and_the_arguments_of_their_grammar(grammar: Grammar) -> None:
    expressions, _ = generate(2_000, 1, grammar=grammar)
    starts = expressions.offsets
    shapes = [shape_of(expressions.tokens[starts[i] : starts[i + 1]]) for i in range(2_000)]
    assert max(depth for depth, _ in shapes) == grammar.max_depth
    assert set.union(*(counts for _, counts in shapes)) == set(range(2, grammar.max_arguments + 1))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"operator_share": 1.5}, r"`operator_share` must lie in \[0, 1\], got 1.5"),
        ({"max_depth": 1}, r"`max_depth` must lie in \[2, 256\], got 1"),
        ({"max_arguments": 65}, r"`max_arguments` must lie in \[2, 64\], got 65"),
        ({"lengths": (9, 4)}, r"`lengths` must be 1 <= least <= greatest, got \(9, 4\)"),
    ],
)
def test_refuses_a_grammar_without_trees(settings: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Grammar(**{"lengths": (4, 60), **settings})


def release(folder: Path, count: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "val", "test"):
        rows = ["Source\tTarget"]
        for each in range(count):
            rows.append(f"( ( ( [MAX {each} ) 3 ) ] )\t{max(each, 3)}")
        (folder / f"basic_{name}.tsv").write_text("\n".join(rows) + "\n")
    return folder


def test_the_files_of_the_release_are_read(tmp_path: Path) -> None:
    release(tmp_path / "lra_release" / "listops-1000")
    folder = prepare("listops-official", data=tmp_path, out=tmp_path / "out", check=False)
    split = load("listops-official", "train", out=tmp_path / "out")
    assert split.labels.tolist() == [3, 3, 3, 3]
    assert decode(split.tokens[:4]) == "[MAX 0 3 ]"
    assert [each["name"] for each in read_manifest(folder)["sources"]] == [
        "basic_train.tsv", "basic_val.tsv", "basic_test.tsv"
    ]  # fmt: skip


def test_refuses_a_release_that_is_not_whole(tmp_path: Path) -> None:
    release(tmp_path / "listops-1000")
    with pytest.raises(ValueError, match=r"basic_train\.tsv must hold 96,000 examples, got 4"):
        prepare("listops-official", data=tmp_path, out=tmp_path / "out")


def test_the_s4_protocol_ends_each_expression_and_has_18_ids(tmp_path: Path) -> None:
    release(tmp_path / "listops-1000")
    kept = {"data": tmp_path, "out": tmp_path / "out", "protocol": "s4-2022", "check": False}
    manifest = read_manifest(prepare("listops-official", **kept))
    split = load("listops-official", "train", out=tmp_path / "out", protocol="s4-2022")
    assert manifest["vocabulary"] == 18
    assert split.ids(0).tolist() == [11 + 3, 0 + 3, 3 + 3, 14 + 3, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must start with the header"),
        ("a\tb\n", "must start with the header 'Source<TAB>Target', got b'a"),
        ("Source\tTarget\n", "holds no expressions"),
        ("Source\tTarget\n( ( [MIN 1 ) ] )\n", "line 2 must have 2 columns parted by a tab, got 1"),
        ("Source\tTarget\n1\t1\t1\n", "line 2 must have 2 columns parted by a tab, got 3"),
        ("Source\tTarget\n1\t12\n", "line 2 must have a label 0 … 9, got b'12'"),
        ("Source\tTarget\n( ( [MIN 1 ) ] )\t2\n", "label 2, but its expression evaluates to 1"),
        ("Source\tTarget\n( [MIN 1\t1\n", "label 1, but its expression is malformed"),
        ('Source\tTarget\n"( ( [MIN 1 ) ] )\t1\n', "line 2 has no ListOps symbol at b'\""),
        ("Source\tTarget\n( ( [MAD 1 ) ] )\t1\n", r"line 2 has no ListOps symbol at b'\[MAD"),
    ],
)
def test_refuses_a_bad_file_by_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "basic_train.tsv").write_text(text)
    with pytest.raises(ValueError, match=says):
        read_tsv(tmp_path / "basic_train.tsv")


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([*WORDS, "(", ")", "\t", "\n", '"'])).map(
        lambda w: " ".join(w).encode()
    )
)
@settings(deadline=None, max_examples=200)
def test_any_file_is_read_or_refused(tmp_path_factory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.tsv"
    path.write_bytes(b"Source\tTarget\n" + raw)
    try:
        _, labels = read_tsv(path)
    except ValueError:
        return
    assert labels.max() <= 9


def test_the_mini_task_is_prepared_without_files_and_tells_its_baselines(tmp_path: Path) -> None:
    folder = prepare("listops-mini", out=tmp_path, workers=2)
    manifest = read_manifest(folder)
    split = load("listops-mini", "test", out=tmp_path)
    assert len(split) == 4_000
    assert 32 <= split.lengths().min() <= split.lengths().max() <= 256
    assert manifest["facts"]["baselines"]["root_operator"] == pytest.approx(25.6, abs=0.7)
    assert manifest["facts"]["grammar"]["max_depth"] == 4
    assert 1 <= split.ids(0).min() <= split.ids(0).max() <= 15
