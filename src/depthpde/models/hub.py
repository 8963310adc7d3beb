"""A folder on the Hugging Face hub: pushed as one commit, fetched file by file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from depthpde.errors import import_optional

README = "README.md"


def push(
    name: str,
    write: Callable[[Path], object],
    card: str,
    *,
    private: bool = False,
    message: str = "Upload with depthpde",
) -> str:
    """Write a folder and push it with its card, as one commit; return the repository's address.

    Args:
        name: ``owner/name``; made where it does not exist.
        write: Called with an empty folder.
        card: The text of its README.md.
        private: Whether a new repository is hidden from others.
        message: Of the commit.
    """
    hub = _library()
    check_name_on_hub(name)
    with TemporaryDirectory() as folder:
        write(Path(folder))
        (Path(folder) / README).write_text(card, encoding="utf-8")
        place = hub.create_repo(name, exist_ok=True, private=private)
        hub.upload_folder(repo_id=name, folder_path=folder, commit_message=message)
    return str(place)


def fetch(path: str | Path, files: Sequence[str], *, revision: str | None = None) -> Path:
    """Return a folder that is here, or the cached copy of one on the hub.

    Args:
        path: A folder, or ``owner/name``.
        files: What is fetched of it.
        revision: A branch, tag or commit on the hub; its main branch unless given.
    """
    folder = Path(path)
    if folder.is_dir() or not _looks_like_a_name(path):
        return folder
    return Path(_library().snapshot_download(path, allow_patterns=list(files), revision=revision))


def check_name_on_hub(name: str) -> str:
    """Return a name on the hub, or say what one looks like."""
    if not _looks_like_a_name(name):
        raise ValueError(
            f"`name` must be that of a repository on the hub, got {name!r}; write it as "
            "'owner/name', or use save_pretrained for a folder"
        )
    return name


def _looks_like_a_name(path: str | Path) -> bool:
    return isinstance(path, str) and path.count("/") == 1 and path[0] not in "./~"


def _library() -> Any:
    return import_optional("huggingface_hub", "the hub", "hf")
