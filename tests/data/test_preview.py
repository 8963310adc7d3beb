from pathlib import Path

import numpy as np
import pytest

from depthpde.data.preview import drawn, exhibit, tree
from depthpde.data.recipes.listops import WORDS
from depthpde.data.writer import Writer

WRITTEN = "[MAX 4 [MIN 2 [SM 9 8 ] ] 1 ]"
EXPRESSION = np.array([WORDS.index(word) for word in WRITTEN.split(" ")], np.uint8)


def make(folder: Path, tokens: np.ndarray, **header) -> Path:
    given = {
        "task": "x",
        "kind": "sequence",
        "shift": 1,
        "length": 9,
        "classes": 2,
        "vocabulary": 257,
    }
    with Writer(folder) as writer:
        writer.facts["class_names"] = ["no", "yes"]
        writer.append("train", tokens, np.array([len(tokens)]), np.array([1]))
        return writer.finish(given | {"grid": None} | header)


def test_a_tree_shows_the_value_of_every_node_down_to_a_depth() -> None:
    assert tree(EXPRESSION).splitlines() == [
        "MAX = 4", "  4", "  MIN = 2", "    2", "    SM = 7", "      9", "      8", "  1"
    ]  # fmt: skip
    assert tree(EXPRESSION, 1).splitlines()[2] == "  MIN of 7 symbols = 2"


def test_an_expression_is_shown_as_text_and_tree(tmp_path: Path) -> None:
    folder = make(tmp_path / "listops-mini", EXPRESSION, task="listops-mini", vocabulary=16)
    shown = exhibit(folder, "train", 0)
    assert shown.text.startswith("[MAX 4 [MIN 2 [SM 9 8 ] ] 1 ]\n\nMAX = 4")
    assert shown.label == "1 (yes)"
    assert shown.length == 11


def test_bytes_are_shown_as_text_and_symbols_of_another_alphabet_as_numbers(tmp_path: Path) -> None:
    tokens = np.frombuffer("a café".encode(), dtype=np.uint8)
    assert exhibit(make(tmp_path / "x", tokens), "train", 0).text == "a café"
    folder = make(tmp_path / "y", tokens[:3], protocol="s4-2022")
    assert exhibit(folder, "train", 0).text == "97 32 99"


def test_an_image_is_shown_as_a_grid(tmp_path: Path) -> None:
    folder = make(tmp_path / "x", np.arange(6, dtype=np.uint8), kind="image", grid=[2, 3])
    shown = exhibit(folder, "train", 0)
    assert shown.image.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "\x1b" in drawn(shown.image, colour=True)
    assert "\x1b" not in drawn(shown.image, colour=False)


def test_pairs_and_language_are_shown(tmp_path: Path) -> None:
    header = {"task": "x", "kind": "pair", "shift": 1, "length": 9, "classes": 2, "vocabulary": 257}
    with Writer(tmp_path / "pair") as writer:
        writer.append("documents", np.frombuffer(b"onetwo", np.uint8), np.array([3, 3]), None)
        writer.append_pairs("train", np.array([[1, 0]]), np.array([0]))
        folder = writer.finish(header)
    assert exhibit(folder, "train", 0).text == "two\n\n--- second document ---\none"
    with Writer(tmp_path / "text") as writer:
        writer.append("train", np.frombuffer(b"0123456789" * 2, np.uint8), np.array([20]), None)
        folder = writer.finish(header | {"kind": "language"})
    assert exhibit(folder, "train", 1).text == "901234567"
    assert exhibit(folder, "train", 1).label == "the next byte"


def test_refuses_an_index_beyond_the_split(tmp_path: Path) -> None:
    folder = make(tmp_path / "x", EXPRESSION)
    with pytest.raises(ValueError, match=r"`index`.*0.*0.*got 1"):
        exhibit(folder, "train", 1)
