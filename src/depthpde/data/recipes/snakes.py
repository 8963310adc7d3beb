"""Two long dashed curves among short ones, drawn and rendered in compiled code.

A snake is a chain of paddles. From the head of the last paddle, go ``margin`` straight on to a
pivot, turn by Δ, go ``margin`` on, and draw the next paddle:

    P(Δ) ∝ cos²(continuity · Δ),   |continuity · Δ| < 90°

Ink of two paddles that do not follow each other in one snake is at least 2 · margin apart, which
is the gap within a snake: curves never cross, and only their course says what belongs together.
Every scene owns 2²⁰ numbers of the counter-based stream.
"""

from __future__ import annotations

import math

import numpy as np

from depthpde.data.counter import kernel
from depthpde.data.drawing import uniform
from depthpde.data.writer import Array

SIZE, PADDING, LENGTH, THICKNESS, MARGIN, RADIUS, SEEDS, CONTINUITY, CONTOUR, DISTRACTOR = range(10)
DISTRACTORS, TARGET_CONTRAST, DISTRACTOR_CONTRAST, CORNER, BAND = range(10, 15)
MAX_PADDLES = 256
_DRAWS = 1 << 20
_TURNS = 12
_RETRIES = 4
_PLACES = 64
_BACK = 6
_STEPS_BACK = 24
_SAMPLES = 4


@kernel
def _next(key: np.uint64, state: Array) -> float:
    value = uniform(key, state[0])
    state[0] += np.uint64(1)
    return value


@kernel
def _closer(p: Array, q: Array, clear: float) -> bool:
    """Return whether two segments (y, x, y, x) come closer than a distance."""
    bound = clear * clear
    return (
        _to_segment(p[0], p[1], q) < bound
        or _to_segment(p[2], p[3], q) < bound
        or _to_segment(q[0], q[1], p) < bound
        or _to_segment(q[2], q[3], p) < bound
        or _cross(p, q)
    )


@kernel
def _cross(p: Array, q: Array) -> bool:
    a = _side(p, q[0], q[1]) * _side(p, q[2], q[3])
    b = _side(q, p[0], p[1]) * _side(q, p[2], p[3])
    return a < 0.0 and b < 0.0


@kernel
def _side(p: Array, y: float, x: float) -> float:
    return float((p[2] - p[0]) * (x - p[1]) - (p[3] - p[1]) * (y - p[0]))


@kernel
def _to_segment(y: float, x: float, p: Array) -> float:
    """Return the squared distance of a point from a segment."""
    dy = p[2] - p[0]
    dx = p[3] - p[1]
    along = ((y - p[0]) * dy + (x - p[1]) * dx) / (dy * dy + dx * dx)
    along = min(1.0, max(0.0, along))
    off_y = y - p[0] - along * dy
    off_x = x - p[1] - along * dx
    return float(off_y * off_y + off_x * off_x)


@kernel
def _place(c: Array, y: float, x: float, angle: float, paddle: Array) -> bool:
    """Write the paddle with its tail at (y, x), and say whether it lies inside the image."""
    paddle[0] = y
    paddle[1] = x
    paddle[2] = y + c[LENGTH] * math.sin(angle)
    paddle[3] = x + c[LENGTH] * math.cos(angle)
    low = c[PADDING]
    high = c[SIZE] - c[PADDING]
    tail = low <= paddle[0] <= high and low <= paddle[1] <= high
    return bool(tail and low <= paddle[2] <= high and low <= paddle[3] <= high)


@kernel
def _free(c: Array, paddles: Array, count: int, skip: int, paddle: Array) -> bool:
    """Return whether a paddle keeps its distance from all others but the one it follows."""
    clear = 2.0 * c[MARGIN] + c[THICKNESS]
    far = 4.0 * (clear + c[LENGTH]) ** 2
    for other in range(count):
        if other == skip:
            continue
        q = paddles[other]
        # Twice the way from middle to middle: most paddles are far away.
        dy = paddle[0] + paddle[2] - q[0] - q[2]
        dx = paddle[1] + paddle[3] - q[1] - q[3]
        if dy * dy + dx * dx < far and _closer(paddle, q, clear):
            return False
    return True


@kernel
def _extend(
    c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array, last: int, count: int
) -> bool:
    """Add the paddle after ``last`` at place ``count`` if some turn is free."""
    y = paddles[last, 2] + c[MARGIN] * math.sin(angles[last])
    x = paddles[last, 3] + c[MARGIN] * math.cos(angles[last])
    for _ in range(_TURNS):
        while True:
            turn = (2.0 * _next(key, state) - 1.0) * 0.5 * math.pi
            if _next(key, state) < math.cos(turn) ** 2:
                break
        angle = angles[last] + turn / c[CONTINUITY]
        tail_y = y + c[MARGIN] * math.sin(angle)
        tail_x = x + c[MARGIN] * math.cos(angle)
        if (
            _place(c, tail_y, tail_x, angle, paddles[count])
            and _ends_well(c, count, paddles[count])
            and _free(c, paddles, count, last, paddles[count])
        ):
            angles[count] = angle
            return True
    return False


@kernel
def _ends_well(c: Array, count: int, paddle: Array) -> bool:
    """Return whether the last paddle of a target stops where a marker on the diagonal begins."""
    total = 2 * int(c[CONTOUR])
    if c[BAND] == 0.0 or count < total - 2 or count >= total:
        return True
    side = -1.0 if count % 2 == 0 else 1.0
    off = (paddle[2] + paddle[3] - c[SIZE]) / math.sqrt(2.0)
    # No pixel is under both: a marker that hid a tip would show whose it is by the missing ink.
    gap = c[RADIUS] + 0.5 * c[THICKNESS] + math.sqrt(2.0) + c[BAND]
    return bool(abs(off - side * gap) <= c[BAND])


@kernel
def _two_snakes(c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array) -> bool:
    """Grow the two target snakes by turns: even places are one, odd places the other."""
    if not _seeds(c, key, state, paddles, angles) or not _free(c, paddles, 1, -1, paddles[1]):
        return False
    total = 2 * int(c[CONTOUR])
    count = 2
    steps_back = _STEPS_BACK
    while count < total:
        if _extend(c, key, state, paddles, angles, count - 2, count):
            count += 1
        elif steps_back == 0:
            return False
        else:
            steps_back -= 1
            count = max(2, count - _BACK)
    # No marker may cover another, whichever tips are marked.
    apart = 2.0 * c[RADIUS] + 1.0
    for origin in range(2):
        for end in range(total - 2, total):
            dy = paddles[origin, 0] - paddles[end, 2]
            if math.hypot(dy, paddles[origin, 1] - paddles[end, 3]) < apart:
                return False
    if c[BAND] == 0.0:
        return True
    one, two = paddles[total - 2], paddles[total - 1]
    return bool(abs(one[2] - one[3] - two[2] + two[3]) >= math.sqrt(2.0) * apart)


@kernel
def _seeds(c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array) -> bool:
    """Place the first paddles of the two target snakes, and say whether both lie inside."""
    if c[CORNER] > 0.0:
        return _seeds_in_corners(c, key, state, paddles, angles)
    middle = c[SIZE] - 4.0 * c[SEEDS]
    y = 2.0 * c[SEEDS] + middle * _next(key, state)
    x = 2.0 * c[SEEDS] + middle * _next(key, state)
    angles[0] = 2.0 * math.pi * _next(key, state)
    towards = 2.0 * math.pi * _next(key, state)
    angles[1] = 2.0 * math.pi * _next(key, state)
    first = _place(c, y, x, angles[0], paddles[0])
    y += c[SEEDS] * math.sin(towards)
    x += c[SEEDS] * math.cos(towards)
    return _place(c, y, x, angles[1], paddles[1]) and first


@kernel
def _seeds_in_corners(
    c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array
) -> bool:
    """Start near two opposite corners, each curve towards the inside."""
    for snake in range(2):
        corner = c[CORNER] if snake == 0 else c[SIZE] - c[CORNER]
        y = corner + 2.0 * _next(key, state) - 1.0
        x = corner + 2.0 * _next(key, state) - 1.0
        angles[snake] = snake * math.pi + 0.5 * math.pi * _next(key, state)
        if not _place(c, y, x, angles[snake], paddles[snake]):
            return False
    return True


@kernel
def _distractor(
    c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array, first: int
) -> int:
    """Grow one short snake from a free place, and return how many paddles it got."""
    wanted = int(c[DISTRACTOR])
    got = 0
    for _ in range(_RETRIES):
        if not _seed(c, key, state, paddles, angles, first):
            return 0
        got = 1
        while got < wanted:
            if not _extend(c, key, state, paddles, angles, first + got - 1, first + got):
                break
            got += 1
        if got == wanted:
            return got
    return got


@kernel
def _seed(
    c: Array, key: np.uint64, state: Array, paddles: Array, angles: Array, first: int
) -> bool:
    """Find a free place for the first paddle of a distractor."""
    span = c[SIZE] - 2.0 * c[PADDING]
    for _ in range(_PLACES):
        y = c[PADDING] + span * _next(key, state)
        x = c[PADDING] + span * _next(key, state)
        angles[first] = 2.0 * math.pi * _next(key, state)
        if _place(c, y, x, angles[first], paddles[first]) and _free(
            c, paddles, first, -1, paddles[first]
        ):
            return True
    return False


@kernel
def scene(
    c: Array, key: np.uint64, number: int, label: int, paddles: Array, markers: Array
) -> tuple[int, int]:
    """Lay out scene ``number``, and return its paddles and the tries it took.

    Args:
        c: Parameters in the order of the constants above.
        key: Key of the stream.
        number: Which scene.
        label: 1 marks the two ends of one snake, 0 an end of each.
        paddles: [MAX_PADDLES, 4] filled with (y, x, y, x), the two targets by turns first.
        markers: [2, 2] filled with (y, x) of the marked tips.
    """
    state = np.zeros(1, np.uint64)
    state[0] = np.uint64(number) * np.uint64(_DRAWS)
    angles = np.zeros(MAX_PADDLES)
    tries = 1
    while not _two_snakes(c, key, state, paddles, angles):
        tries += 1
    count = 2 * int(c[CONTOUR])
    for _ in range(int(c[DISTRACTORS])):
        got = _distractor(c, key, state, paddles, angles, count)
        if got == 0:  # the image is full
            break
        count += got
    origin = 0 if c[CORNER] > 0.0 else int(2.0 * _next(key, state))
    end = 2 * int(c[CONTOUR]) - 2 + (origin if label else 1 - origin)
    markers[0, 0] = paddles[origin, 0]
    markers[0, 1] = paddles[origin, 1]
    markers[1, 0] = paddles[end, 2]
    markers[1, 1] = paddles[end, 3]
    if c[BAND] > 0.0:
        # On the diagonal and off the ink, the marker alone does not tell whose it is.
        off = 0.5 * (markers[1, 0] + markers[1, 1] - c[SIZE])
        markers[1, 0] -= off
        markers[1, 1] -= off
    return count, tries


@kernel
def render(c: Array, paddles: Array, count: int, markers: Array, image: Array) -> None:
    """Draw a scene into an image of bytes.

    pixel = 255 · max( min(1, contrast · share of the pixel under ink),  1 inside a marker )
    """
    targets = 2 * int(c[CONTOUR])
    image[:] = 0
    for each in range(count):
        contrast = c[TARGET_CONTRAST] if each < targets else c[DISTRACTOR_CONTRAST]
        _ink(c, paddles[each], 0.5 * c[THICKNESS], contrast, image)
    for each in range(2):
        y, x = markers[each, 0], markers[each, 1]
        dot = np.array([y, x, y, x + 1e-9])
        _ink(c, dot, c[RADIUS], 1.0, image)


@kernel
def _ink(c: Array, p: Array, radius: float, contrast: float, image: Array) -> None:
    """Lay the capsule around a segment over an image, the brighter of the two kept."""
    size = int(c[SIZE])
    top = max(0, math.floor(min(p[0], p[2]) - radius))
    bottom = min(size - 1, math.floor(max(p[0], p[2]) + radius))
    left = max(0, math.floor(min(p[1], p[3]) - radius))
    right = min(size - 1, math.floor(max(p[1], p[3]) + radius))
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            inside = 0
            for sample in range(_SAMPLES * _SAMPLES):
                y = row + (sample // _SAMPLES + 0.5) / _SAMPLES
                x = column + (sample % _SAMPLES + 0.5) / _SAMPLES
                inside += _to_segment(y, x, p) <= radius * radius
            share = inside / (_SAMPLES * _SAMPLES)
            level = round(255.0 * min(1.0, contrast * share))
            if level > image[row, column]:
                image[row, column] = level


@kernel
def _take_turns(c: Array, margins: Array, distractors: Array, number: int) -> None:
    """Set what scenes take by turns to what is scene ``number``'s."""
    c[MARGIN] = margins[number % len(margins)]
    c[DISTRACTORS] = distractors[number % len(distractors)]


@kernel
def mark(
    c: Array,
    margins: Array,
    distractors: Array,
    key: np.uint64,
    first: int,
    labels: Array,
    marks: Array,
) -> None:
    """Lay out consecutive scenes, and note their marked tips [scenes, 2, 2] without drawing."""
    paddles = np.zeros((MAX_PADDLES, 4))
    own = c.copy()
    for each in range(len(labels)):
        number = first + each
        _take_turns(own, margins, distractors, number)
        scene(own, key, number, labels[each], paddles, marks[each])


@kernel
def paint(
    c: Array,
    margins: Array,
    distractors: Array,
    key: np.uint64,
    first: int,
    labels: Array,
    images: Array,
) -> int:
    """Lay out and draw consecutive scenes, and return the tries they took together."""
    paddles = np.zeros((MAX_PADDLES, 4))
    markers = np.zeros((2, 2))
    own = c.copy()
    total = 0
    for each in range(len(labels)):
        number = first + each
        _take_turns(own, margins, distractors, number)
        count, tries = scene(own, key, number, labels[each], paddles, markers)
        render(own, paddles, count, markers, images[each])
        total += tries
    return total
