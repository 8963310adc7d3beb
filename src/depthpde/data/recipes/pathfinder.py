"""Pathfinder: are the two marked tips the ends of one dashed curve?

The scenes come from this package's own generator with the published parameters (``snakes`` has
the law of the curves), at 32×32 and, for Path-X, at 128×128; labels are balanced exactly. The
images of the Long Range Arena release are read by ``pathfinder-official`` and
``pathx-official``.

At 32×32 a small model stays at 50 % for thousands of updates. ``pathfinder-mini`` is therefore
easier by construction, not only smaller. Its two curves are short and start near opposite corners,
the first mark is always at the upper left one, and distractors are single dashes; a third of the
scenes has none of them, which is where a model can begin. Both curves stop
short of the diagonal between the corners, and the second mark lies on it, straight before one of
the tips and clear of both curves. So the same curves are seen whatever the label, the places of
the marks and sums of pixels hardly tell it, and what decides is which curve leads to the mark.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from depthpde.data.counter import bits
from depthpde.data.protocol import ValidationSource
from depthpde.data.ragged import rows
from depthpde.data.recipes.image import grey_facts
from depthpde.data.source import Source
from depthpde.data.splits import hold_out, stratified
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer
from depthpde.errors import check_positive, check_range
from depthpde.seeds import derive

RELEASE = Source(
    name="the Long Range Arena release",
    layout="pathfinder32/curv_contour_length_14/imgs and metadata (pathfinder128 for Path-X)",
    url="https://github.com/google-research/long-range-arena (lra_release.gz)",
    patterns=("pathfinder32/curv_contour_length_14/", "pathfinder128/curv_contour_length_14/"),
)
_BLOCK = 512
_LABEL_FIELD = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenery:
    """The parameters of a scene; lengths in pixels."""

    size: int
    """Height and width of the image."""
    padding: float = 1.0
    """Border without ink."""
    paddle_length: float = 2.0
    """Length of a dash."""
    paddle_thickness: float = 0.5
    """Width of a dash."""
    margins: tuple[float, ...] = (1.0,)
    """Half the gap between dashes; scenes take the values by turns."""
    marker_radius: float = 1.5
    """Radius of the discs on the two tips."""
    seed_distance: float = 7.0
    """Distance of the two curves' first tips."""
    continuity: float = 1.0
    """How straight the curves are."""
    contour_length: int = 14
    """Dashes of each of the two curves."""
    distractor_length: int = 4
    """Dashes of a distractor."""
    num_distractors: tuple[int, ...] = (5,)
    """Distractors, fewer where there is no room; scenes take the values by turns."""
    target_contrast: float = 1.5
    """Brightness of full ink of the two curves; 1 is white."""
    distractor_contrast: float = 2.0
    """Brightness of full ink of a distractor."""
    corner: float = 0.0
    """The curves start this far from two opposite corners; 0 starts them in the middle."""
    band: float = 0.0
    """The curves end as far from the diagonal between those corners as a marker on it needs, give
    or take this; 0 ends them anywhere, with a marker on the very tip."""

    def __post_init__(self) -> None:
        """Refuse scenes that cannot be laid out."""
        check_positive("size", self.size)
        check_positive("contour_length", self.contour_length)
        check_positive("distractor_length", self.distractor_length)
        advice = "the curves start where twice that distance is left on every side"
        check_range("seed_distance", self.seed_distance, 1.0, self.size / 4, advice=advice)
        paddles = 2 * self.contour_length + max(self.num_distractors) * self.distractor_length
        check_range("paddles", paddles, 2, 256, advice="use shorter or fewer curves")

    def parameters(self) -> Array:
        """Return the numbers of a scene that is first in all turns, in the order of `snakes`."""
        return np.array(
            [
                self.size,
                self.padding,
                self.paddle_length,
                self.paddle_thickness,
                self.margins[0],
                self.marker_radius,
                self.seed_distance,
                self.continuity,
                self.contour_length,
                self.distractor_length,
                self.num_distractors[0],
                self.target_contrast,
                self.distractor_contrast,
                self.corner,
                self.band,
            ],
            dtype=np.float64,
        )

    def turns(self) -> tuple[Array, Array]:
        """Return the margins and the numbers of distractors that scenes take by turns."""
        return np.array(self.margins, np.float64), np.array(self.num_distractors, np.float64)


LRA_32 = Scenery(size=32)
PATH_X = Scenery(
    size=128,
    paddle_length=5.0,
    paddle_thickness=1.5,
    margins=(2.0, 3.0),
    marker_radius=3.0,
    seed_distance=20.0,
    continuity=1.8,
    num_distractors=(8,),
    target_contrast=0.9,
    distractor_contrast=1.0,
)

MINI = Scenery(
    size=16,
    paddle_length=1.5,
    paddle_thickness=1.0,
    margins=(0.75,),
    marker_radius=1.5,
    seed_distance=3.0,
    contour_length=3,
    distractor_length=1,
    num_distractors=(0, 6, 12),
    target_contrast=0.5,
    distractor_contrast=0.5,
    corner=2.5,
    band=0.4,
)
SCENERIES = {"pathfinder": LRA_32, "pathx": PATH_X, "pathfinder-mini": MINI}


def labels_of(count: int, seed: int, *, start: int = 0) -> Array:
    """Return labels start … start + count − 1: of each two neighbours one is 0 and one is 1."""
    first = start // 2
    coins = (bits(derive(seed, "pathfinder", "labels"), count // 2 + 2, start=first) >> 63) & 1
    every = np.stack([coins, 1 - coins], axis=1).reshape(-1)
    return every[start - 2 * first :][:count].astype(np.uint8)


def generate(
    scenery: Scenery, count: int, seed: int, *, start: int = 0, workers: int = 1
) -> tuple[Array, Array]:
    """Draw scenes start … start + count − 1: images [count, size, size] and labels.

    Args:
        scenery: The parameters.
        count: Scenes wanted.
        seed: Seed of the stream.
        start: Number of the first scene.
        workers: Threads; the images do not depend on it.
    """
    from depthpde.data.recipes.snakes import paint

    key = np.uint64(derive(seed, "pathfinder", scenery.size))
    labels = labels_of(count, seed, start=start)
    images = np.empty((count, scenery.size, scenery.size), dtype=np.uint8)
    parameters, turns = scenery.parameters(), scenery.turns()

    def block(first: int) -> None:
        part = slice(first, min(count, first + _BLOCK))
        paint(parameters, *turns, key, start + first, labels[part], images[part])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(block, range(0, count, _BLOCK)))
    return images, labels


def baselines(scenery: Scenery, seed: int, *, count: int = 8000) -> dict[str, float]:
    """Return the accuracy (%) of what needs no following of curves.

    ``majority``: one label for all. ``marks_apart``: the best bound on the distance of the marks.
    ``second_mark``: the commoner label for the pixel under the second mark, learned on three
    quarters of the scenes and measured on the last.
    """
    from depthpde.data.recipes.snakes import mark

    labels, marks = labels_of(count, seed), np.zeros((count, 2, 2))
    key = np.uint64(derive(seed, "pathfinder", scenery.size))
    mark(scenery.parameters(), *scenery.turns(), key, 0, labels, marks)
    apart = np.hypot(*(marks[:, 0] - marks[:, 1]).T)
    near = max(
        abs(float(((apart < bound) == labels).mean()) - 0.5)
        for bound in np.percentile(apart, range(2, 100, 2))
    )
    part = count * 3 // 4
    places = marks[:, 1].astype(np.int64) @ np.array([scenery.size, 1])
    votes = np.bincount(places[:part], weights=labels[:part] * 2.0 - 1.0, minlength=scenery.size**2)
    second = float(((votes[places[part:]] > 0) == labels[part:]).mean())
    return {
        "majority": 50.0,
        "marks_apart": round(50 + 100 * near, 1),
        "second_mark": round(100 * second, 1),
    }


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Generate test first, then validation, then train, in pieces of bounded memory."""
    scenery = SCENERIES[task.name]
    start = 0
    writer.facts["baselines"] = baselines(scenery, request.seed)
    writer.facts["scenery"] = {
        name: getattr(scenery, name) for name in scenery.__dataclass_fields__
    }
    for split in reversed(list(task.splits)):
        end = start + task.splits[split]
        request.log(f"{task.name}: drawing {end - start:,} scenes for {split}")
        piece = max(_BLOCK, (1 << 26) // scenery.size**2)
        for first in range(start, end, piece):
            count = min(piece, end - first)
            images, labels = generate(
                scenery, count, request.seed, start=first, workers=request.workers
            )
            if split == "train" and first == start:
                writer.facts |= grey_facts(images)
            joined = rows(images.reshape(count, -1))
            writer.append(split, joined.tokens, joined.lengths, labels)
        start = end


def read_metadata(folder: Path) -> list[tuple[Path, int]]:
    """Return the image files and labels that a release folder lists, batches in number order.

    The files ``metadata/N.npy`` are plain text despite their name, one line an image: folder,
    file, number, label, and more.
    """
    listed: list[tuple[Path, int]] = []
    metadata = folder / "metadata"
    files = [file for file in metadata.glob("*.npy") if file.stem.isdecimal()]
    if not files:
        raise FileNotFoundError(
            f"{metadata} must hold the files N.npy of the release, found none; unpack the whole "
            f"archive from {RELEASE.url}"
        )
    for file in sorted(files, key=lambda file: int(file.stem)):
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            fields = line.decode("latin-1").split()
            if len(fields) <= _LABEL_FIELD or fields[_LABEL_FIELD] not in ("0", "1"):
                raise ValueError(
                    f"{file} line {number} must have the label 0 or 1 as its fourth field, got "
                    f"{line[:60]!r}; take the file of the release"
                )
            image = Path(fields[0]) / fields[1]
            if image.is_absolute() or ".." in image.parts:
                raise ValueError(f"{file} line {number} points outside its folder: {image}")
            listed.append((folder / image, int(fields[_LABEL_FIELD])))
    return listed


def read_png(path: Path, size: int) -> Array:
    """Return the grey levels [size, size] of one image file."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ValueError(
            f"{path} is a PNG, which needs Pillow: pip install 'depthpde[data]'"
        ) from error
    try:
        pixels = np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("L"))
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"{path} is not a readable image ({error}); unpack it again") from error
    if pixels.shape != (size, size):
        raise ValueError(f"{path} must be an image of {size}×{size}, got {pixels.shape}")
    return pixels


def official_recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the images of the hard split, and divide them 80/10/10 by the protocol."""
    assert task.grid is not None, "Pathfinder has a grid"
    size = task.grid[0]
    pattern = f"pathfinder{size}/curv_contour_length_14/"
    folder = RELEASE.find(request.data, [pattern], task=task.name)
    listed = read_metadata(folder)
    labels = np.array([label for _, label in listed], dtype=np.uint8)
    if request.check:
        RELEASE.check_count(str(folder), sum(task.splits.values()), len(listed))
    request.log(f"{task.name}: reading {len(listed):,} images of {folder}")
    writer.add_source(folder, images=len(listed))
    parts = divide(labels, request.rules.validation, request.seed, task.name)
    piece = max(_BLOCK, (1 << 26) // size**2)
    for split, part in parts.items():
        for first in range(0, len(part), piece):
            some = part[first : first + piece]
            images = np.stack([read_png(listed[index][0], size) for index in some])
            if split == "train" and first == 0:
                writer.facts |= grey_facts(images)
            joined = rows(images.reshape(len(some), -1))
            writer.append(split, joined.tokens, joined.lengths, labels[some])


def divide(labels: Array, rule: ValidationSource, seed: int, name: str) -> dict[str, Array]:
    """Divide 80/10/10: test is taken away first, then validation."""
    count = len(labels) // 10
    if rule is ValidationSource.HELD_OUT:
        rest, test = stratified(labels, count, seed, name, "test")
        train, held = stratified(labels[rest], count, seed, name)
        return {"train": rest[train], "validation": rest[held], "test": test}
    rest, test = hold_out(labels, count, rule, seed, name)
    return {"train": rest[:-count], "validation": rest[-count:], "test": test}
