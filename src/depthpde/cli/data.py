"""``depthpde data``: tasks listed, prepared, verified and shown."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUMMARY = "list, prepare, verify and show the tasks: Long Range Arena, MNIST, 20 Newsgroups, text"
_ORDER = ["train", "validation", "test", "documents"]
EXAMPLES = """examples:
  depthpde data list
  depthpde data prepare --all-mini --data FOLDER
  depthpde data prepare text --protocol lra-2020
  depthpde data verify
  depthpde data show listops-mini --count 2
  depthpde data show pathfinder-mini --png pictures/

The official files are looked for beneath --data (default: $DEPTHPDE_DATA); prepared arrays go to
--out (default: the user's cache folder). `depthpde data list` says what is missing and where to
get it."""


ACTIONS = {
    "list": "list the tasks with their sizes, what is there and what is not",
    "prepare": "read or generate tasks, and write their arrays",
    "verify": "recompute the checksums of prepared tasks",
    "show": "print and draw examples of a prepared task",
}
"""Action → what it does."""
_EXAMPLES = {
    "list": """examples:
  depthpde data list --data FOLDER
  depthpde data list --json""",
    "prepare": """examples:
  depthpde data prepare listops-mini
  depthpde data prepare text --protocol lra-2020 --data FOLDER

What is prepared already and whole by the sizes of its files is left as it is.""",
    "verify": """examples:
  depthpde data verify
  depthpde data verify listops-mini text@lra-2020

Exit code 1 where something has changed.""",
    "show": """examples:
  depthpde data show listops-mini --split test --count 2
  depthpde data show pathfinder-mini --png pictures/""",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the four actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing, preparing, verifying, showing = (_add_action(actions, name) for name in ACTIONS)
    for action in (listing, preparing):
        action.add_argument("--data", type=Path, help="folder with the official files")
    for action in (preparing, showing):
        action.add_argument("--protocol", default="strict", help="strict (default) or a legacy one")
    _configure_prepare(preparing)
    verifying.add_argument(
        "tasks",
        nargs="*",
        metavar="TASK",
        help="TASK or TASK@PROTOCOL (default: all that are prepared)",
    )
    add = showing.add_argument
    add("task", metavar="TASK", help="which one; see: depthpde data list")
    add("--split", default="train", help="train (default), validation or test")
    add("--index", type=int, default=0, metavar="N", help="first example shown (default: 0)")
    add("--count", type=int, default=1, metavar="N", help="how many (default: 1)")
    add("--depth", type=int, default=3, metavar="N", help="levels of a ListOps tree (default: 3)")
    add("--png", type=Path, metavar="FOLDER", help="write images there")


def run(args: argparse.Namespace) -> int:
    """Run one action."""
    action: Callable[[argparse.Namespace], int] = {
        "list": _list,
        "prepare": _prepare,
        "verify": _verify,
        "show": _show,
    }[args.action]
    return action(args)


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str
) -> argparse.ArgumentParser:
    """Add one action with what all of them have."""
    action = actions.add_parser(
        name,
        help=ACTIONS[name],
        description=ACTIONS[name],
        epilog=_EXAMPLES[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action.add_argument("--out", type=Path, metavar="FOLDER", help="folder for prepared arrays")
    action.add_argument("--json", action="store_true", help="one JSON object for scripts")
    action.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )
    return action


def _configure_prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="which; see: depthpde data list")
    parser.add_argument("--all", action="store_true", help="every task whose files are there")
    parser.add_argument("--all-mini", action="store_true", help="every mini task")
    parser.add_argument(
        "--seed", type=int, default=0, help="of all that is generated or drawn (default: 0)"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="threads"
    )
    parser.add_argument("--force", action="store_true", help="again, even if it is prepared")
    parser.add_argument(
        "--any-checksum", action="store_true", help="accept files that differ from the published"
    )


def _list(args: argparse.Namespace) -> int:
    from depthpde.data.catalog import condition, default_data, prepared_tasks
    from depthpde.data.reader import default_out, how_to_prepare
    from depthpde.data.tasks import TASKS

    data, out = args.data or default_data(), args.out or default_out()
    prepared = prepared_tasks(out)
    rows: list[dict[str, Any]] = []
    for task in TASKS.values():
        found = task.source is None or task.source.seek(data) is not None
        status = "ready" if found else "missing"
        if task.name in prepared:
            status = condition(prepared[task.name])
        rows.append(
            {
                "task": task.name,
                "kind": task.kind.value,
                "length": task.length,
                "vocabulary": task.vocabulary,
                "classes": task.classes,
                "splits": dict(task.splits),
                "status": status,
                "title": task.title,
                "source": task.source.name if task.source else "generated",
                "get_it_from": task.source.url if task.source else None,
            }
        )
    if args.json:
        print(json.dumps({"data": str(data) if data else None, "out": str(out), "tasks": rows}))
        return 0
    _print_rows(rows)
    missing = {row["source"]: row["get_it_from"] for row in rows if row["status"] == "missing"}
    print(f"\nofficial files: {data or 'no folder given (--data or $DEPTHPDE_DATA)'}")
    print(f"prepared arrays: {out}")
    for source, url in missing.items():
        print(f"missing: {source} — get it from {url}")
    for row in rows:
        if row["status"] in ("damaged", "outdated"):
            print(f"{row['status']}: {row['task']} — run: {how_to_prepare(prepared[row['task']])}")
    return 0


def _print_rows(rows: list[dict[str, Any]]) -> None:
    head = ("task", "status", "length", "classes", "train/validation/test", "what")
    cells = [
        (
            row["task"],
            row["status"],
            f"{row['length']:,}",
            str(row["classes"]),
            "/".join(f"{count:,}" for count in row["splits"].values()),
            row["title"],
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for cell in (head, *cells):
        name, status, *numbers, what = cell
        middle = " ".join(f"{n:>{w}}" for n, w in zip(numbers, widths[2:5], strict=True))
        print(f"{name:{widths[0]}} {status:{widths[1]}} {middle}  {what}")


def _prepare(args: argparse.Namespace) -> int:
    from depthpde.data.catalog import folder_of, prepare, prepared_tasks
    from depthpde.data.reader import default_out, read_manifest

    out = args.out or default_out()
    results, failed = [], 0
    for name in _chosen(args):
        folder = folder_of(name, out, args.protocol)
        started = time.perf_counter()
        there = folder.name in prepared_tasks(out) and not args.force
        again = _why_again(folder, name, args) if there else ""
        if there and not again:
            _tell(args, f"{folder.name}: prepared already in {folder} (--force does it again)")
        else:
            if again:
                _tell(args, f"{folder.name}: {again}; it is prepared again")
            try:
                prepare(
                    name,
                    data=args.data,
                    out=out,
                    protocol=args.protocol,
                    seed=args.seed,
                    workers=args.workers,
                    check=not args.any_checksum,
                    log=lambda line: _tell(args, line),
                )
            except FileNotFoundError as error:
                # Of several tasks, one without its files must not keep the others from being made.
                if len(args.tasks) == 1 and not (args.all or args.all_mini):
                    raise
                print(f"depthpde data: {error}", file=sys.stderr)
                failed += 1
                continue
        seconds = time.perf_counter() - started
        manifest = read_manifest(folder)
        results.append({"task": folder.name, "folder": str(folder), "seconds": round(seconds, 2)})
        if not args.json:
            print(f"{folder.name}: {_sizes(manifest)} in {seconds:.1f} s → {folder}")
    if args.json:
        print(json.dumps({"prepared": results, "failed": failed}))
    return 1 if failed else 0


def _chosen(args: argparse.Namespace) -> list[str]:
    from depthpde.data.catalog import default_data
    from depthpde.data.tasks import TASKS
    from depthpde.errors import check_name

    data = args.data or default_data()
    names = [check_name("task", name, TASKS) for name in args.tasks]
    if args.all_mini:
        names += [task.name for task in TASKS.values() if task.mini]
    if args.all:
        names += [
            task.name
            for task in TASKS.values()
            if task.source is None or task.source.seek(data) is not None
        ]
    if not names:
        raise ValueError("name a task, or pass --all-mini or --all; see: depthpde data list")
    return list(dict.fromkeys(names))


def _why_again(folder: Path, name: str, args: argparse.Namespace) -> str:
    """Return why a prepared task must be made again, best nothing; no checksum is computed."""
    from depthpde.data.reader import misfits, read_manifest
    from depthpde.data.tasks import TASKS

    try:
        manifest = read_manifest(folder)
    except ValueError:
        return "its manifest cannot be read"
    if manifest.get("seed") != args.seed:
        return f"it is of seed {manifest.get('seed')}, not {args.seed}"
    if manifest.get("generator") != TASKS[name].generator:
        return "it is of another version of its recipe"
    return next(iter(misfits(folder, manifest)), "")


def _verify(args: argparse.Namespace) -> int:
    from depthpde.data.catalog import verify
    from depthpde.data.reader import default_out

    found = verify(args.out or default_out(), args.tasks)
    if args.json:
        print(json.dumps({"problems": found}))
    else:
        for name, problems in found.items():
            print(f"{name}: {'; '.join(problems) if problems else 'whole'}")
    return 1 if any(found.values()) else 0


def _show(args: argparse.Namespace) -> int:
    from depthpde.data.catalog import folder_of
    from depthpde.data.picture import png
    from depthpde.data.preview import drawn, exhibit
    from depthpde.data.reader import default_out
    from depthpde.data.tasks import TASKS
    from depthpde.errors import check_name, check_positive

    name = check_name("task", args.task, TASKS)
    folder = folder_of(name, args.out or default_out(), args.protocol)
    records = []
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for index in range(args.index, args.index + check_positive("count", args.count)):
        shown = exhibit(folder, args.split, index, depth=args.depth)
        record: dict[str, Any] = {
            "index": index,
            "label": shown.label,
            "length": shown.length,
            "text": shown.text,
        }
        if shown.image is not None and args.png is not None:
            args.png.mkdir(parents=True, exist_ok=True)
            path = args.png / f"{folder.name}-{args.split}-{index}.png"
            path.write_bytes(png(shown.image, zoom=max(1, 256 // len(shown.image))))
            record["png"] = str(path)
        records.append(record)
        if not args.json:
            print(f"{folder.name} · {args.split} {index} · label {shown.label} · {shown.length}")
            print(shown.text if shown.image is None else drawn(shown.image, colour=colour))
            print(f"→ {record['png']}\n" if "png" in record else "")
    if args.json:
        print(json.dumps({"task": folder.name, "split": args.split, "examples": records}))
    return 0


def _sizes(manifest: dict[str, Any]) -> str:
    parts = []
    for split in sorted(manifest["splits"], key=_ORDER.index):
        entry = manifest["splits"][split]
        amount = "tokens" if manifest["kind"] == "language" else "examples"
        parts.append(f"{split} {entry[amount]:,}")
    return ", ".join(parts)


def _tell(args: argparse.Namespace, line: str) -> None:
    if not args.json:
        print(line, file=sys.stderr, flush=True)
