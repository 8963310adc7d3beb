"""insert_from(model, folder) → Insertion: a saved insertion makes itself again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from depthpde.files import read_json
from depthpde.insertion.insert import insert
from depthpde.insertion.insertion import CONFIG, FORMAT, WEIGHTS, Insertion
from depthpde.models.hub import fetch


def insert_from(
    model: nn.Module,
    folder: str | Path,
    *,
    batch: Mapping[str, Any] | None = None,
    revision: str | None = None,
) -> Insertion:
    """Insert what `save_pretrained` wrote, with its weights; nothing else needs to be said.

    >>> model = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> folder = dp.insert(model, "after_ffn").save_pretrained("diffusion")
    >>> again = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> inserted = dp.insert_from(again, folder)

    Args:
        model: Of the same family and sizes as the one it was saved from.
        folder: Where it was saved; or ``owner/name`` on the Hugging Face hub (extra ``hf``).
        batch: Named arguments of one call, where `insert` needed them too: images of the size
            that will be used.
        revision: A branch, tag or commit on the hub.
    """
    place = fetch(folder, (CONFIG, WEIGHTS), revision=revision)
    made = insert(model, **_recipe(place / CONFIG), batch=batch)
    try:
        made.load(place / WEIGHTS)
    except (ValueError, OSError):
        made.remove()  # as if nothing had been asked
        raise
    return made


def _recipe(path: Path) -> dict[str, Any]:
    """Return what a saved insertion was made with, or raise with what is wrong with its file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"`folder` must hold {path.name}, got {str(path.parent)!r} without it; write it with "
            "inserted.save_pretrained(folder)"
        )
    saved = read_json(path)
    version = saved.get("format") if isinstance(saved, dict) else None
    if version != FORMAT or not isinstance(saved.get("insertion"), dict):
        raise ValueError(
            f"{path} must be of format {FORMAT}, got {version!r}; save it again with this version"
        )
    return dict(saved["insertion"])
