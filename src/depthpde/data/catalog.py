"""The prepared tasks of one folder: prepare them, load them, verify them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from depthpde.data.protocol import STRICT, Rules, rules_of
from depthpde.data.reader import (
    Split,
    default_out,
    how_to_prepare,
    misfits,
    prepare_command,
    problems,
    read_manifest,
    read_split,
)
from depthpde.data.task import Request, Task
from depthpde.data.tasks import TASKS
from depthpde.data.writer import MANIFEST, Writer
from depthpde.errors import check_name, check_positive

ENVIRONMENT = "DEPTHPDE_DATA"
SEED = 0


def default_data() -> Path | None:
    """Return the folder with the official files that ``$DEPTHPDE_DATA`` names, if any."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named) if named else None


def folder_of(name: str, out: Path, protocol: str = STRICT) -> Path:
    """Return where a task prepared under a protocol lies."""
    return out / (name if protocol == STRICT else f"{name}@{protocol}")


def resolved(task: Task, protocol: str) -> tuple[Task, Rules]:
    """Return a task with what a protocol changes of its shape, and the protocol's rules."""
    rules = rules_of(task.name, task.family, protocol, mini=task.mini)
    changed = replace(
        task,
        length=rules.length or task.length,
        vocabulary=rules.vocabulary or task.vocabulary,
    )
    return changed, rules


def prepare(
    task: str | Task,
    *,
    data: Path | None = None,
    out: Path | None = None,
    protocol: str = STRICT,
    seed: int = SEED,
    workers: int = 1,
    check: bool = True,
    log: Callable[[str], None] = lambda line: None,
) -> Path:
    """Read or generate a task, write its arrays and manifest, and return their folder.

    The bytes written depend on the files read, the protocol and the seed, never on the machine,
    the number of workers or the day. Nothing is left behind when it fails.

    >>> manifest = dp.prepare("listops-mini")   # doctest: +SKIP

    Args:
        task: A task or its name.
        data: Folder with the official files; ``$DEPTHPDE_DATA`` if not given.
        out: Folder for prepared tasks; the user's cache folder if not given.
        protocol: ``strict`` or one of the legacy protocols.
        seed: Seed of everything generated or drawn.
        workers: Threads of the generators.
        check: Refuse files whose published checksum or count differs.
        log: Called with what is going on, one line at a time.
    """
    known = _task(task)
    check_positive("workers", workers)
    changed, rules = resolved(known, protocol)
    request = Request(
        data=data or default_data(), rules=rules, seed=seed, workers=workers, check=check, log=log
    )
    with Writer(folder_of(known.stored_as, out or default_out(), protocol)) as writer:
        known.recipe(changed, request, writer)
        return writer.finish(_header(changed, request, writer))


def load(task: str | Task, split: str, *, out: Path | None = None, protocol: str = STRICT) -> Split:
    """Return one split of a prepared task as memory maps.

    >>> split = dp.load("listops-mini", "train")

    Args:
        task: A task or its name.
        split: ``train``, ``validation`` or ``test``.
        out: Folder for prepared tasks; the user's cache folder if not given.
        protocol: The protocol it was prepared under.
    """
    known = _task(task)
    rules_of(known.name, known.family, protocol, mini=known.mini)
    folder = folder_of(known.stored_as, out or default_out(), protocol)
    manifest = read_manifest(folder)
    if manifest.get("generator") != known.generator:
        raise ValueError(
            f"{folder} must come from version {known.generator} of its recipe, got "
            f"{manifest.get('generator')!r}; run: {how_to_prepare(folder)}"
        )
    return read_split(folder, split)


def prepared_tasks(out: Path) -> dict[str, Path]:
    """Return the folders of all prepared tasks by name, ``name@protocol`` for legacy ones."""
    if not out.is_dir():
        return {}
    return {
        each.name: each
        for each in sorted(out.iterdir())
        if not each.name.startswith(".") and (each / MANIFEST).exists()
    }


def verify(out: Path, names: list[str] | None = None) -> dict[str, list[str]]:
    """Recompute the checksums of prepared tasks: name → what is wrong.

    Args:
        out: Folder for prepared tasks.
        names: Which; all that are there if not given.
    """
    found = prepared_tasks(out)
    for name in names or []:
        if name not in found:
            _check_folder_name(name)
    chosen = {name: out / name for name in names} if names else found
    if not chosen:
        raise FileNotFoundError(
            f"{out} holds no prepared task; run: {prepare_command(out, '--all-mini')}"
        )
    return {name: [*problems(folder), *_outdated(folder)] for name, folder in chosen.items()}


def _outdated(folder: Path) -> list[str]:
    """State that a folder comes from another version of its recipe, which `load` refuses."""
    known = TASKS.get(folder.name.partition("@")[0])
    try:
        version = read_manifest(folder).get("generator")
    except (ValueError, OSError):
        return []  # told already
    if known is None or version == known.generator:
        return []
    return [
        f"{folder} comes from version {version} of its recipe, and the task is at version "
        f"{known.generator}; run: {how_to_prepare(folder)}"
    ]


def condition(folder: Path) -> str:
    """Describe how a prepared folder is: ``prepared``, ``outdated`` or ``damaged``.

    Outdated: of another version of its recipe. Damaged: a manifest that cannot be read, or a file
    that is missing or of another size; what the files hold is for `verify`.
    """
    try:
        manifest = read_manifest(folder)
    except (ValueError, OSError):
        return "damaged"
    if _outdated(folder):
        return "outdated"
    return "damaged" if misfits(folder, manifest) else "prepared"


def _check_folder_name(name: str) -> None:
    """Refuse a folder's name, such as ``text@lra-2020``, whose task or protocol nobody knows."""
    task, _, protocol = name.partition("@")
    known = _task(task)
    rules_of(known.name, known.family, protocol or STRICT, mini=known.mini)


def _task(task: str | Task) -> Task:
    return task if isinstance(task, Task) else TASKS[check_name("task", task, TASKS)]


def _header(task: Task, request: Request, writer: Writer) -> dict[str, Any]:
    rules = request.rules
    return {
        "task": task.name,
        "title": task.title,
        "kind": task.kind.value,
        "protocol": rules.protocol,
        "validation": rules.validation.value,
        "differences": list(rules.differences),
        "not_imitated": list(rules.not_imitated),
        "padding": rules.padding,
        "mask_zero_pixels": rules.mask_zero_pixels,
        "seed": request.seed,
        "generator": task.generator,
        "checksums_checked": request.check,
        "length": task.length,
        "vocabulary": writer.facts.pop("vocabulary", task.vocabulary),
        "classes": task.classes,
        "shift": task.shift,
        "grid": list(task.grid) if task.grid else None,
    } | ({} if task.channels is None else {"channels": task.channels})
