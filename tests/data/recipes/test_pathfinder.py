import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from depthpde.data.catalog import load, prepare
from depthpde.data.picture import png
from depthpde.data.protocol import ValidationSource
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.pathfinder import (
    LRA_32,
    MINI,
    PATH_X,
    Scenery,
    baselines,
    divide,
    generate,
    labels_of,
    read_metadata,
    read_png,
)
from depthpde.data.recipes.snakes import DISTRACTORS, MAX_PADDLES, render, scene
from depthpde.data.tasks import TASKS

SCENERIES = {"32": LRA_32, "path-x": PATH_X, "mini": MINI}


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, np.ndarray]:
    return generate(LRA_32, 20_000, 0, workers=2)


def layout(scenery: Scenery, number: int, label: int) -> tuple[np.ndarray, np.ndarray]:
    paddles, markers = np.zeros((MAX_PADDLES, 4)), np.zeros((2, 2))
    parameters = scenery.parameters()
    parameters[DISTRACTORS] = scenery.num_distractors[number % len(scenery.num_distractors)]
    count, _ = scene(parameters, np.uint64(5), number, label, paddles, markers)
    return paddles[:count], markers


def joined(scenery: Scenery, paddles: np.ndarray, markers: np.ndarray) -> bool:
    """Flood a fine drawing of all snakes, gaps closed, from one marker: is the other reached?

    Discs of a little more than the margin around the ink close the gaps within a snake (twice the
    margin) and no gap between snakes (twice the margin and the thickness of the ink). A second
    marker that stands before its tip is widened to touch it.
    """
    fine = 4
    reach = scenery.margins[0] + 0.16 * scenery.paddle_thickness
    touch = scenery.marker_radius + 2.0 if scenery.band else 0.0
    places = (np.arange(scenery.size * fine) + 0.5) / fine
    y, x = np.meshgrid(places, places, indexing="ij")
    ink = np.zeros(y.shape, dtype=bool)
    for top, left, bottom, right in paddles:
        dy, dx = bottom - top, right - left
        along = np.clip(((y - top) * dy + (x - left) * dx) / (dy * dy + dx * dx), 0, 1)
        ink |= (y - top - along * dy) ** 2 + (x - left - along * dx) ** 2 <= reach**2
    ink |= (y - markers[1, 0]) ** 2 + (x - markers[1, 1]) ** 2 <= touch**2
    areas, _ = ndimage.label(ink)
    one, two = (areas[int(my * fine), int(mx * fine)] for my, mx in markers)
    return bool(one == two)


@pytest.mark.parametrize("name", SCENERIES)
def test_a_flood_fill_of_the_drawn_snakes_solves_the_task(name: str) -> None:
    scenery, count = SCENERIES[name], 12 if name == "path-x" else 200
    right = [
        joined(scenery, *layout(scenery, number, number % 2)) == bool(number % 2)
        for number in range(count)
    ]
    assert np.mean(right) >= 0.99


@pytest.mark.parametrize("name", SCENERIES)
def test_paddles_are_inside_and_both_curves_whole(name: str) -> None:
    scenery = SCENERIES[name]
    for number in range(20):
        paddles, _ = layout(scenery, number, 1)
        assert len(paddles) >= 2 * scenery.contour_length
        assert paddles.min() >= scenery.padding - 1e-9
        assert paddles.max() <= scenery.size - scenery.padding + 1e-9
        ends = np.hypot(paddles[:, 2] - paddles[:, 0], paddles[:, 3] - paddles[:, 1])
        assert np.allclose(ends, scenery.paddle_length)


@pytest.mark.parametrize("name", SCENERIES)
def test_both_markers_are_visible_and_apart(name: str) -> None:
    scenery = SCENERIES[name]
    image = np.zeros((scenery.size, scenery.size), dtype=np.uint8)
    without = image.copy()
    nowhere = np.full((2, 2), -50.0)
    for number in range(20):
        paddles, markers = layout(scenery, number, number % 2)
        render(scenery.parameters(), paddles, len(paddles), markers, image)
        render(scenery.parameters(), paddles, len(paddles), nowhere, without)
        assert np.hypot(*(markers[0] - markers[1])) >= 2 * scenery.marker_radius + 1
        for y, x in markers:
            near = (slice(max(0, int(y) - 1), int(y) + 2), slice(max(0, int(x) - 1), int(x) + 2))
            assert image[near].max() >= 200
            assert image[near].sum() > without[near].sum() + 255


def test_labels_are_balanced_exactly_and_unpredictable() -> None:
    labels = labels_of(10_000, 0)
    assert labels.sum() == 5_000
    assert (labels_of(100, 0, start=37) == labels[37:137]).all()
    assert abs(labels[::2].mean() - 0.5) < 0.03


def test_the_images_do_not_depend_on_the_workers_or_the_start() -> None:
    one, labels = generate(MINI, 1_100, 4)
    two, others = generate(MINI, 1_100, 4, workers=3)
    assert (one == two).all()
    assert (labels == others).all()
    part, some = generate(MINI, 100, 4, start=700)
    assert (part == one[700:800]).all()
    assert (some == labels[700:800]).all()
    assert (generate(MINI, 100, 5)[0] != one[:100]).any()


def test_neither_brightness_nor_ink_tells_the_label(many) -> None:
    images, labels = many
    for measure in (
        images.mean(axis=(1, 2)),
        (images > 0).sum(axis=(1, 2)),
        (images > 200).sum(axis=(1, 2)),
    ):
        best = max(
            abs(((measure > cut) == labels).mean() - 0.5)
            for cut in np.percentile(measure, range(5, 100, 5))
        )
        assert best < 0.03


def test_a_linear_and_a_nearest_neighbour_probe_stay_at_chance(many) -> None:
    images, labels = many
    pixels = images.reshape(len(images), -1).astype(np.float32) / 255
    pixels -= pixels.mean(axis=0)
    train, test, wanted = pixels[:16_000], pixels[16_000:18_000], labels[16_000:18_000]
    sides = labels[:16_000].astype(np.float32) * 2 - 1
    weights = np.linalg.solve(
        train.T @ train + 100 * np.eye(1024, dtype=np.float32), train.T @ sides
    )
    assert abs(((test @ weights > 0) == wanted).mean() - 0.5) < 0.03
    distance = (train**2).sum(axis=1) - 2 * test @ train.T
    nearest = np.argpartition(distance, 9, axis=1)[:, :9]
    assert abs(((sides[nearest].sum(axis=1) > 0) == wanted).mean() - 0.5) < 0.03


@pytest.mark.parametrize("name", ["32", "mini"])
def test_where_the_marks_are_hardly_tells_the_label(name: str) -> None:
    found = baselines(SCENERIES[name], 0)
    assert abs(found["second_mark"] - 50) < 6
    assert found["marks_apart"] < 58
    assert found["majority"] == 50


def test_the_second_mark_of_the_mini_lies_on_the_diagonal_before_its_own_curve() -> None:
    last = 2 * MINI.contour_length - 2
    for number in range(200):
        label = number % 2
        paddles, markers = layout(MINI, number, label)
        assert markers[1].sum() == pytest.approx(MINI.size)
        away = np.hypot(*(paddles[last : last + 2, 2:] - markers[1]).T)
        assert int(away.argmin()) == 1 - label
        assert away.min() > MINI.marker_radius + 0.5 * MINI.paddle_thickness + 1


def test_scenes_take_their_numbers_of_distractors_by_turns() -> None:
    few = [dataclasses.replace(MINI, num_distractors=turns) for turns in ((0, 2), (0,), (2,))]
    mixed, none, two = (generate(scenery, 300, 0)[0] for scenery in few)
    assert (mixed[::2] == none[::2]).all()
    assert (mixed[1::2] == two[1::2]).all()
    assert (none != two).any(axis=(1, 2)).all()


def test_the_mini_shows_the_same_curves_whatever_the_label() -> None:
    parameters, images = MINI.parameters(), np.zeros((2, 16, 16), dtype=np.uint8)
    for number in range(50):
        for label in (0, 1):
            paddles, markers = layout(MINI, number, label)
            markers[1] = -50.0
            render(parameters, paddles, len(paddles), markers, images[label])
        assert (images[0] == images[1]).all()


def test_a_linear_probe_of_the_mini_stays_near_chance() -> None:
    images, labels = generate(MINI, 20_000, 0, workers=2)
    pixels = images.reshape(len(images), -1).astype(np.float32) / 255
    pixels -= pixels.mean(axis=0)
    train, test, wanted = pixels[:16_000], pixels[16_000:], labels[16_000:]
    sides = labels[:16_000].astype(np.float32) * 2 - 1
    weights = np.linalg.solve(
        train.T @ train + 100 * np.eye(256, dtype=np.float32), train.T @ sides
    )
    # A distractor under a mark is hidden, and those keep to the far side of the other curve.
    assert abs(((test @ weights > 0) == wanted).mean() - 0.5) < 0.08


def test_refuses_scenes_that_cannot_be_laid_out() -> None:
    with pytest.raises(ValueError, match=r"`seed_distance`.*\[1, 4\].*got 7; the curves"):
        Scenery(size=16)
    with pytest.raises(ValueError, match=r"`paddles` must lie in \[2, 256\].*shorter or fewer"):
        Scenery(size=64, contour_length=200)
    with pytest.raises(ValueError, match=r"`contour_length`.*1.*got 0"):
        Scenery(size=32, contour_length=0)


def test_the_mini_task_is_prepared_without_files(tmp_path: Path, monkeypatch) -> None:
    sizes = {"train": 700, "validation": 100, "test": 200}
    small = dataclasses.replace(TASKS["pathfinder-mini"], splits=sizes)
    monkeypatch.setitem(TASKS, "pathfinder-mini", small)
    manifest = read_manifest(prepare("pathfinder-mini", out=tmp_path))
    assert {name: entry["examples"] for name, entry in manifest["splits"].items()} == sizes
    assert manifest["splits"]["test"]["label_shares"] == {"0": 0.5, "1": 0.5}
    images, labels = generate(MINI, 1000, 0)
    test = load("pathfinder-mini", "test", out=tmp_path)
    assert test.ids(7).tolist() == images[7].reshape(-1).tolist()
    assert load("pathfinder-mini", "train", out=tmp_path).labels[0] == labels[300]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "official" / "lra_release" / "pathfinder32" / "curv_contour_length_14"
    images, labels = generate(LRA_32, 40, 1)
    (folder / "metadata").mkdir(parents=True)
    for batch in (0, 1, 10, 2):
        (folder / "imgs" / str(batch)).mkdir(parents=True)
        lines = []
        for number in range(10):
            index = [0, 1, 2, 10].index(batch) * 10 + number
            name = f"sample_{number}.png"
            (folder / "imgs" / str(batch) / name).write_bytes(png(images[index]))
            lines.append(f"imgs/{batch} {name} {number} {labels[index]} 1.0 14 4 2 0.5 1 1")
        (folder / "metadata" / f"{batch}.npy").write_text("\n".join(lines) + "\n")
    return folder


def test_the_release_is_read_in_the_order_of_its_batches(release: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    images, labels = generate(LRA_32, 40, 1)
    assert [label for _, label in read_metadata(release)] == labels.tolist()
    kept = {"data": tmp_path / "official", "out": tmp_path}
    with pytest.raises(ValueError, match="must hold 200,000 examples, got 40"):
        prepare("pathfinder-official", **kept)
    kept |= {"check": False}
    prepare("pathfinder-official", **kept, protocol="lra-2020")
    test = load("pathfinder-official", "test", out=tmp_path, protocol="lra-2020")
    assert test.ids(0).tolist() == images[36].reshape(-1).tolist()
    manifest = read_manifest(prepare("pathfinder-official", **kept))
    assert manifest["splits"]["train"]["examples"] == 32
    assert manifest["splits"]["test"]["label_shares"] == {"0": 0.5, "1": 0.5}


def test_the_s4_division_is_that_of_one_permutation() -> None:
    import torch

    order = torch.randperm(100, generator=torch.Generator().manual_seed(42)).tolist()
    parts = divide(np.zeros(100), ValidationSource.RANDOM_42, 0, "x")
    assert [parts[name].tolist() for name in ("train", "validation", "test")] == [
        order[:80], order[80:90], order[90:]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("imgs/0 sample_0.png 0", "line 1 must have the label 0 or 1 as its fourth field"),
        ("imgs/0 sample_0.png 0 7 1.0", "line 1 must have the label 0 or 1 as its fourth field"),
        ("../../etc passwd 0 1", r"line 1 points outside its folder"),
    ],
)
def test_refuses_bad_metadata(release: Path, line: str, says: str) -> None:
    (release / "metadata" / "0.npy").write_text(line)
    with pytest.raises(ValueError, match=says):
        read_metadata(release)


@given(st.binary(max_size=120))
@settings(max_examples=150, deadline=None)
def test_any_metadata_is_read_or_refused(tmp_path_factory, raw: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz-pathfinder"
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    (folder / "metadata" / "0.npy").write_bytes(raw)
    try:
        listed = read_metadata(folder)
    except ValueError:
        return
    assert all(folder in path.parents and label in (0, 1) for path, label in listed)


def test_refuses_missing_metadata_and_unreadable_images(release: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    image = release / "imgs" / "0" / "sample_0.png"
    with pytest.raises(ValueError, match=r"sample_0\.png.*of 128×128, got \(32, 32\)"):
        read_png(image, 128)
    image.write_bytes(b"")  # one image of the real release is empty
    with pytest.raises(ValueError, match=r"sample_0\.png is not a readable image"):
        read_png(image, 32)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"must.*files N\.npy of the release"):
        read_metadata(tmp_path / "empty")


def test_images_without_pillow_name_the_extra(release: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ValueError, match=r"needs Pillow: pip install 'depthpde\[data\]'"):
        read_png(release / "imgs" / "0" / "sample_0.png", 32)
