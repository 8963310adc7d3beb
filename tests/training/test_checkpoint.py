import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch

from depthpde.training.checkpoint import Checkpoint, Checkpoints

WHO = {"training": {"learning_rate": 0.1, "seed": 0}, "model": {"class": "Classifier"}}


def state(number):
    tensors = {"model/w": torch.full((3,), float(number)), "optimizer/w/step": torch.tensor(1.0)}
    return Checkpoint(tensors, {"update": number, "loss": 0.1 + 0.2})


@pytest.fixture
def kept(tmp_path):
    found = Checkpoints(tmp_path / "run", WHO)
    for number in (1, 2, 3):
        found.save(number, state(number))
    return found


def newest(kept):
    printed = []
    found = kept.latest(printed.append)
    return found.history["update"], printed


def test_nothing_saved_gives_nothing(tmp_path):
    assert Checkpoints(tmp_path, WHO).latest(pytest.fail) is None


def test_the_newest_comes_back_to_the_bit(kept):
    found = kept.latest(pytest.fail)
    assert found.history == state(3).history
    assert found.tensors.keys() == state(3).tensors.keys()
    assert all(torch.equal(found.tensors[name], each) for name, each in state(3).tensors.items())


def test_the_last_two_are_kept_and_nothing_else(kept):
    names = sorted(each.name for each in kept.folder.iterdir())
    assert names == [
        "update-00000002.json", "update-00000002.safetensors",
        "update-00000003.json", "update-00000003.safetensors",
    ]  # fmt: skip


def test_tensors_that_share_memory_are_saved_apart(tmp_path):
    shared = torch.arange(6.0)
    kept = Checkpoints(tmp_path, WHO)
    kept.save(1, Checkpoint({"a": shared, "b": shared, "c": shared.view(2, 3).T}, {}))
    found = kept.latest(pytest.fail).tensors
    assert torch.equal(found["a"], found["b"])
    assert torch.equal(found["c"], shared.view(2, 3).T)


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_checkpoint_is_passed_over_and_said(kept, suffix, share):
    path = kept.folder / f"update-00000003.{suffix}"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    update, printed = newest(kept)
    assert update == 2
    assert len(printed) == 1
    assert printed[0].startswith("update-00000003.json is damaged")
    assert printed[0].endswith("the checkpoint before it is used")


@pytest.mark.parametrize("suffix", ["json", "safetensors"])
def test_one_flipped_bit_anywhere_is_noticed(kept, suffix):
    path = kept.folder / f"update-00000003.{suffix}"
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 60)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert newest(kept)[0] == 2, f"byte {at}"


def test_a_history_changed_by_hand_is_noticed(kept):
    path = kept.folder / "update-00000003.json"
    output = json.loads(path.read_text())
    output["history"]["loss"] = 0.0
    path.write_text(json.dumps(output))
    assert "its checksum does not fit its text" in newest(kept)[1][0]


def test_another_format_is_passed_over(kept):
    path = kept.folder / "update-00000003.json"
    path.write_text(json.dumps({"format": 99}))
    assert "format 99 instead of 1" in newest(kept)[1][0]


def test_changed_tensors_are_noticed(kept):
    path = kept.folder / "update-00000003.safetensors"
    path.write_bytes(path.read_bytes() + b"\0")
    assert "the checksum does not fit the tensors" in newest(kept)[1][0]


def test_missing_tensors_are_noticed(kept):
    (kept.folder / "update-00000003.safetensors").unlink()
    assert newest(kept)[0] == 2


def test_refuses_a_folder_of_damaged_checkpoints_only(kept):
    for path in kept.folder.glob("*.json"):
        path.write_text("{")
    with pytest.raises(ValueError, match="must hold a whole checkpoint, got 2 damaged"):
        newest(kept)


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ({**WHO, "training": {"learning_rate": 0.2, "seed": 0}}, "learning_rate = 0.1 where this"),
        ({**WHO, "model": {"class": "LanguageModel"}}, "class = 'Classifier' where this run has"),
        ({**WHO, "data": 1}, "data = None where this run has 1; use another folder"),
    ],
)
def test_refuses_a_checkpoint_of_another_run(kept, who, message):
    with pytest.raises(ValueError, match=message):
        Checkpoints(kept.folder, who).latest(pytest.fail)


def test_refuses_to_save_what_json_cannot_say(kept):
    with pytest.raises(ValueError, match="JSON"):
        kept.save(4, Checkpoint({}, {"loss": float("nan")}))
    assert newest(kept)[0] == 3


def test_what_a_killed_writer_left_is_swept_away(kept):
    (kept.folder / ".update-00000004.json.partial").write_text("{")
    (kept.folder / "update-00000004.safetensors").write_bytes(b"renamed, but the JSON never came")
    (kept.folder / "notes.txt").write_text("not ours")
    assert newest(Checkpoints(kept.folder, WHO))[0] == 3
    assert len(list(kept.folder.iterdir())) == 5
    assert (kept.folder / "notes.txt").exists()


def test_refuses_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot be written .*choose a folder that can be written"):
        Checkpoints(tmp_path / "file" / "run", WHO)


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(tmp_path):
    script = textwrap.dedent("""
        import resource, signal, sys, torch
        from depthpde.training.checkpoint import Checkpoint, Checkpoints
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit then fails
        kept = Checkpoints(sys.argv[1], {})
        kept.save(1, Checkpoint({"w": torch.zeros(9)}, {}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            kept.save(2, Checkpoint({"w": torch.zeros(9999)}, {}))
        except OSError as error:
            assert "free the disk" in str(error), error
            assert len(kept.latest(print).tensors["w"]) == 9
            print("said")
    """)
    found = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert found.stdout == "said\n", found.stderr
