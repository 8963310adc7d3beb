"""Protocols: which examples select a model, and what older code did otherwise.

``strict`` is the default: validation examples are held out of train, stratified by label and
seeded, and the test split is never used to choose anything. The legacy protocols repeat what
published numbers were measured with; every difference goes into the manifest in words, and so
does what is *not* imitated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from depthpde.errors import check_name


class ValidationSource(StrEnum):
    """Where the validation examples come from."""

    HELD_OUT = "held-out"
    """A stratified, seeded share of train."""
    GIVEN = "given"
    """The official files have a validation split of their own."""
    LAST = "last"
    """The last share of train, in file order."""
    RANDOM_42 = "random-42"
    """``torch.randperm`` with seed 42 over train, its last share."""
    TEST = "test"
    """The test examples themselves: what is selected on them is not a test result."""


class Units(StrEnum):
    """What a token of a text is."""

    BYTES = "bytes"
    CHARACTERS = "characters"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What one protocol says about one family of tasks."""

    protocol: str
    """Name of the protocol."""
    validation: ValidationSource = ValidationSource.HELD_OUT
    """Where the validation examples come from."""
    length: int | None = None
    """Longest sequence, where it differs from the task's."""
    padding: int | None = None
    """Every batch is padded to this length; None pads to the length bucket."""
    vocabulary: int | None = None
    """Number of token ids, where it differs from the task's."""
    units: Units = Units.BYTES
    """Bytes or unicode characters."""
    end: bool = False
    """Unknown and end-of-sequence symbols take the first two ids, and each sequence ends."""
    mask_zero_pixels: bool = False
    """Pixels of value 0 are not valid, as if they were padding."""
    bit_reversed: bool = False
    """Pixels stand in bit-reversed order."""
    differences: tuple[str, ...] = ()
    """In words: what differs from strict."""
    not_imitated: tuple[str, ...] = ()
    """In words: what the old code did and this does not."""


STRICT = "strict"
LEGACY = ("lra-2020", "nystrom-2021", "s4-2022")
PROTOCOLS = (STRICT, *LEGACY)

_ZERO = "pixels of value 0 are masked as if they were padding"
_ON_TEST = "validates on the test set: its best test accuracy was selected on test"
_TFDS = "the order of TensorFlow Datasets: the order of the official files is taken instead"
_QUOTES = "the default CSV quoting, which merges rows at stray quotes"

_LRA: dict[str, Rules] = {
    "listops": Rules(
        protocol="lra-2020",
        validation=ValidationSource.GIVEN,
        padding=2000,
        vocabulary=17,
        differences=("padded to 2,000", "17 ids: one for unknown symbols"),
        not_imitated=("ids in an order that changes from process to process",),
    ),
    "text": Rules(
        protocol="lra-2020",
        validation=ValidationSource.TEST,
        length=1000,
        padding=1000,
        differences=(_ON_TEST, "the repository's length of 1,000 bytes, not the paper's 4,000"),
    ),
    "retrieval": Rules(
        protocol="lra-2020",
        validation=ValidationSource.GIVEN,
        padding=4000,
        differences=("padded to 4,000",),
    ),
    "image": Rules(
        protocol="lra-2020",
        validation=ValidationSource.LAST,
        mask_zero_pixels=True,
        differences=(_ZERO, "the last 5,000 training images validate, unstratified"),
        not_imitated=(_TFDS,),
    ),
    "pathfinder": Rules(
        protocol="lra-2020",
        validation=ValidationSource.LAST,
        mask_zero_pixels=True,
        differences=(_ZERO, "80/10/10 in file order, unstratified"),
        not_imitated=(_TFDS,),
    ),
    "mnist": Rules(
        protocol="lra-2020",
        validation=ValidationSource.LAST,
        mask_zero_pixels=True,
        differences=(_ZERO, "first 54,000 train, last 6,000 validate"),
    ),
}

_NYSTROM: dict[str, Rules] = {
    "listops": Rules(
        protocol="nystrom-2021",
        validation=ValidationSource.GIVEN,
        padding=2048,
        vocabulary=17,
        differences=("padded to 2,048", "17 ids: one for unknown symbols"),
    ),
    "text": Rules(
        protocol="nystrom-2021",
        validation=ValidationSource.TEST,
        length=1000,
        padding=1024,
        differences=(_ON_TEST, "cut at 1,000 bytes although its configuration says 4,000"),
    ),
    "retrieval": Rules(
        protocol="nystrom-2021",
        validation=ValidationSource.GIVEN,
        padding=4096,
        differences=("padded to 4,096",),
    ),
    "image": Rules(
        protocol="nystrom-2021",
        validation=ValidationSource.LAST,
        vocabulary=512,
        mask_zero_pixels=True,
        differences=(_ZERO, "the last 5,000 training images validate", "512 ids for 256 levels"),
        not_imitated=(_TFDS,),
    ),
    "pathfinder": Rules(
        protocol="nystrom-2021",
        validation=ValidationSource.RANDOM_42,
        vocabulary=512,
        mask_zero_pixels=True,
        differences=(_ZERO, "80/10/10 shuffled, unstratified", "512 ids for 256 levels"),
        not_imitated=("its shuffle has no seed: seed 42 is taken instead",),
    ),
}

_S4: dict[str, Rules] = {
    "listops": Rules(
        protocol="s4-2022",
        validation=ValidationSource.GIVEN,
        length=2048,
        vocabulary=18,
        end=True,
        differences=("ends with an end-of-sequence token", "18 ids: padding, unknown, end"),
    ),
    "text": Rules(
        protocol="s4-2022",
        validation=ValidationSource.TEST,
        length=4096,
        units=Units.CHARACTERS,
        end=True,
        differences=(
            _ON_TEST,
            "unicode characters seen at least 15 times in train instead of bytes",
            "4,096 symbols with the end-of-sequence token",
        ),
    ),
    "retrieval": Rules(
        protocol="s4-2022",
        validation=ValidationSource.GIVEN,
        not_imitated=("characters instead of bytes", "an end-of-sequence token", _QUOTES),
    ),
    "image": Rules(
        protocol="s4-2022",
        validation=ValidationSource.RANDOM_42,
        differences=("a random tenth validates (torch seed 42), unstratified", "linear input"),
    ),
    "pathfinder": Rules(
        protocol="s4-2022",
        validation=ValidationSource.RANDOM_42,
        differences=("80/10/10 by torch seed 42, unstratified", "linear input"),
    ),
    "mnist": Rules(
        protocol="s4-2022",
        validation=ValidationSource.RANDOM_42,
        bit_reversed=True,
        differences=("pixels in bit-reversed order", "a random tenth validates (torch seed 42)"),
    ),
}

_TABLE = {"lra-2020": _LRA, "nystrom-2021": _NYSTROM, "s4-2022": _S4}
_OWN_VALIDATION = ("listops", "retrieval")


def rules_of(task: str, family: str, protocol: str, *, mini: bool = False) -> Rules:
    """Return what a protocol says about a task, or say that it says nothing."""
    check_name("protocol", protocol, PROTOCOLS)
    if protocol == STRICT:
        given = family in _OWN_VALIDATION
        return Rules(
            protocol=STRICT,
            validation=ValidationSource.GIVEN if given else ValidationSource.HELD_OUT,
        )
    if mini or family not in _TABLE[protocol]:
        raise ValueError(
            f"`protocol` {protocol!r} says nothing about {task}: nobody published numbers on it "
            f"with that code; use --protocol {STRICT}"
        )
    return _TABLE[protocol][family]
