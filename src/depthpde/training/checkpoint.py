"""Checkpoints: written whole or not at all, checked when read, the last two kept.

    update-00000400.safetensors   every tensor: model, optimizer, best weights
    update-00000400.json          history, identity, checksum of the tensors and of itself

The JSON is renamed into place last, so a checkpoint exists when it does. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from depthpde.files import write_whole

FORMAT = 1
KEPT = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One state of a run."""

    tensors: dict[str, Tensor]
    """Full name → value."""
    history: dict[str, Any]
    """Plain values."""


class Checkpoints:
    """The checkpoints of one run, in a folder of their own.

    Args:
        folder: Where; made if absent.
        identity: Plain values that say which run this is; a checkpoint of another is refused.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        # Through JSON and back: tuples and enums then compare equal to what a checkpoint holds.
        self.identity = json.loads(json.dumps(dict(identity)))
        self._attempt(lambda: self.folder.mkdir(parents=True, exist_ok=True))
        self._sweep()

    def save(self, update: int, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and forget all but the last two."""
        whole = {name: each.detach().contiguous() for name, each in checkpoint.tensors.items()}
        # Cloned, because safetensors refuses tensors that share storage, as tied weights do.
        packed = save({name: each.cpu().clone() for name, each in whole.items()})
        values = {
            "format": FORMAT,
            "update": update,
            "identity": self.identity,
            "history": checkpoint.history,
            "tensors": hashlib.sha256(packed).hexdigest(),
        }
        text = json.dumps(values | {"checksum": _checksum(values)}, allow_nan=False)
        name = f"update-{update:08d}"

        def write() -> None:
            # Tensors, then the JSON that vouches for them, then the old ones: killed between any
            # two of these lines, the newest JSON still belongs to a whole checkpoint.
            write_whole(self.folder / f"{name}.safetensors", packed)
            write_whole(self.folder / f"{name}.json", text)
            for old in self._found()[KEPT:]:
                old.unlink()  # the JSON first: what is left of it is no checkpoint
                old.with_suffix(".safetensors").unlink(missing_ok=True)

        self._attempt(write)

    def latest(self, log: Callable[[str], None]) -> Checkpoint | None:
        """Return the newest whole checkpoint, or None where none was ever written.

        Args:
            log: Told which checkpoints were passed over, and why.
        """
        found = self._found()
        for path in found:
            try:
                values, packed = _read(path)
            except (ValueError, KeyError, TypeError, OSError) as error:
                log(f"{path.name} is damaged ({error}); the checkpoint before it is used")
                continue
            self._check_identity(path, values["identity"])
            return Checkpoint(load(packed), values["history"])
        if found:
            raise ValueError(
                f"{self.folder} must hold a whole checkpoint, got {len(found)} damaged one(s); "
                "delete the folder to train anew"
            )
        return None

    def _sweep(self) -> None:
        """Remove what a run that was killed while writing left behind."""
        partial = list(self.folder.glob(".update-*.partial*"))
        tensors = self.folder.glob("update-*.safetensors")
        alone = [each for each in tensors if not each.with_suffix(".json").exists()]
        for left in partial + alone:
            left.unlink(missing_ok=True)

    def _found(self) -> list[Path]:
        return sorted(self.folder.glob("update-*.json"), reverse=True)

    def _check_identity(self, path: Path, theirs: Mapping[str, Any]) -> None:
        ours, other = _flat(self.identity), _flat(theirs)
        for key in sorted(ours.keys() | other.keys()):
            if ours.get(key) != other.get(key):
                raise ValueError(
                    f"{path} must be of this run, got one with {key} = {other.get(key)!r} where "
                    f"this run has {ours.get(key)!r}; use another folder, or the same settings"
                )

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            raise OSError(
                error.errno,
                f"a checkpoint cannot be written ({error.strerror}); free the disk, or choose "
                "a folder that can be written",
                str(self.folder),
            ) from error


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    values = json.loads(path.read_text(encoding="utf-8"))
    if values["format"] != FORMAT:
        raise ValueError(f"format {values['format']!r} instead of {FORMAT}")
    if values.pop("checksum") != _checksum(values):
        raise ValueError("its checksum does not fit its text")
    packed = path.with_suffix(".safetensors").read_bytes()
    if hashlib.sha256(packed).hexdigest() != values["tensors"]:
        raise ValueError("the checksum does not fit the tensors")
    return values, packed


def _checksum(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values under dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return found
