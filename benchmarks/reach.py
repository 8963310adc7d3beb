"""Which architectures of the installed transformers insert, probe, diagnose and audit reach.

    python benchmarks/reach.py            print the table
    python benchmarks/reach.py --check    and exit 1 if a type of docs/reach.md is lost
    python benchmarks/reach.py --fill     and write it into docs/reach.md
    python benchmarks/reach.py --only gpt2 llama    with --fill their lines alone are made anew
    python benchmarks/reach.py --keep rows.jsonl    stopped and started again, it goes on

A type counts as reached by `insert` if layers at every position that it offers, all at once, are
the identity to the bit when inserted, are gone to the bit when removed, move the output away from
the identity, and let nothing reach what it could not reach before (future, padding, cache).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import transformers

import depthpde as dp
from tiny_models import KINDS, build, model_types, quiet_library

PAGE = Path(__file__).parents[1] / "docs" / "reach.md"
BEGIN, END = "<!-- reach: made by benchmarks/reach.py -->", "<!-- reach: end -->"
VERBS = ("insert", "probe", "diagnose", "audit")
POSITIONS = (
    "after_embedding",
    "before_norm",
    "in_attention",
    "in_heads",
    "after_attention",
    "after_ffn",
    "between_blocks",
)
REACHED = 0.9
"""Share of the built types, for each verb."""
QUESTIONS = ("future", "padding", "cache")


@dataclass
class Row:
    """One architecture."""

    kind: str
    name: str
    built: bool = True
    positions: Sequence[str] = ()
    reached: dict[str, bool] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    crash: str = ""
    """A fault of ours: anything but a ValueError that explains itself."""
    seconds: float = 0.0
    """Of one core, without building it."""

    @property
    def line(self) -> str:
        """The type's line of the table."""
        cells = [f"{len(self.positions)} of 7" if self.reached.get("insert") else "–"]
        cells += ["✓" if self.reached.get(verb) else "–" for verb in VERBS[1:]]
        return f"| {self.kind} | {self.name} | " + " | ".join(cells) + " |"


def examine(kind: str, name: str, class_name: str) -> Row:
    """Try the four verbs on one architecture."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    row = Row(kind, name)
    with quiet_library():
        try:
            model, batch = build(kind, name, class_name)
        except Exception:
            row.built = False
            return row
        begin = time.process_time()
        verbs: dict[str, Callable[[], Any]] = {
            "probe": lambda: dp.probe(model, batch, baseline=False, causality=False, groups=()),
            "diagnose": lambda: dp.diagnose(model, batch),
            "insert": lambda: _insert(row, model, batch),
            "audit": lambda: row.reached.get("insert") or _audit(model, batch),
        }
        for verb, run in verbs.items():
            try:
                run()
                row.reached[verb] = True
            except ValueError as error:
                row.why[verb] = " ".join(str(error).split())
            except Exception:
                row.crash += f"{verb}: {traceback.format_exc(limit=-3)}\n"
        row.seconds = time.process_time() - begin
    return row


def _audit(model: Any, batch: dict[str, torch.Tensor]) -> dp.AuditReport:
    """Ask the questions that an inserted layer could spoil; benchmarks/audit.py asks all six."""
    return dp.audit(model, batch, questions=QUESTIONS)


def _insert(row: Row, model: Any, batch: dict[str, torch.Tensor]) -> None:
    """Insert at every position, all at once; refuse to count what is not clean."""
    stated: dict[str, Any] = {"batch": batch}
    if row.kind in ("causal", "masked"):
        stated["causal"] = row.kind == "causal"
    stack = _stack(model, batch)
    plain = _outputs(model, batch)
    inserted, refusals = {}, []
    for position in POSITIONS:
        try:
            inserted[position] = _try(model, position, stack, stated)
        except ValueError as error:
            refusals.append(str(error))
    if not inserted:
        raise ValueError(refusals[0])
    try:
        same = _equal(_outputs(model, batch), plain)
        after = _audit(model, batch)  # away from the identity
        layers = [layer for each in inserted.values() for layer in each.layers.values()]
        _leave_identity(layers)
        moved = not _equal(_outputs(model, batch), plain)
    finally:
        for each in inserted.values():
            each.remove()
    leaks = [each.name for each in after.leaks]
    before = dp.audit(model, batch, questions=leaks) if leaks else after
    for name in leaks:
        if before[name].verdict is not dp.Isolation.LEAK:
            raise ValueError(f"with layers inserted, {name} leaks: {after[name].detail}")
    if not (same and moved and _equal(_outputs(model, batch), plain)):
        raise ValueError(f"identity {same}, acts {moved}, removed to the bit or not")
    row.positions = tuple(inserted)


def _leave_identity(layers: Sequence[torch.nn.Module]) -> None:
    with torch.no_grad():
        for layer in layers:
            for weight in layer.parameters():
                weight.fill_(0.1)


def _try(
    model: Any, position: str, stack: str | None, stated: dict[str, Any], **options: Any
) -> Any:
    """Insert; say whether the model is causal only where it cannot be found out."""
    known = {"stack": stack, "batch": stated["batch"], **options}
    try:
        return dp.insert(model, position, **known)
    except ValueError as error:
        if "`causal` must be given" not in str(error) or "causal" not in stated:
            raise
        return dp.insert(model, position, **known, causal=stated["causal"])


def _stack(model: Any, batch: dict[str, torch.Tensor]) -> str | None:
    """Choose among several stacks: a decoder, or the first stage, whose image is largest."""
    try:
        dp.insert(model, "between_blocks", batch=batch).remove()
    except ValueError as error:
        if "stack=" in str(error):
            names = str(error).split("got ", 1)[1].split("'")[1::2]
            return names[0 if "pixel_values" in batch else -1]
    return None


def _outputs(model: Any, batch: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad():
        torch.manual_seed(0)
        output = model(**batch)
    values = output.values() if hasattr(output, "values") else output
    return [each.clone() for each in values if isinstance(each, torch.Tensor)]


def _equal(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    pairs = zip(a, b, strict=True)
    return all(torch.equal(torch.nan_to_num(x), torch.nan_to_num(y)) for x, y in pairs)


def table(rows: Sequence[Row]) -> str:
    """Return what the page shows: shares, every type, and what is not reached."""
    built = [row for row in rows if row.built]
    lines = [
        f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}; "
        f"{len(built)} of {len(rows)} listed types built. *insert*: positions that hold a layer.",
        "",
        "| kind | built | " + " | ".join(VERBS) + " |",
        "|---" * (2 + len(VERBS)) + "|",
    ]
    for kind in (*KINDS, "all"):
        own = [row for row in built if kind in (row.kind, "all")]
        counts = [str(sum(row.reached.get(verb, False) for row in own)) for verb in VERBS]
        lines.append(f"| {kind} | {len(own)} | " + " | ".join(counts) + " |")
    lines += ["", "### Not reached", ""]
    lines += [
        f"- {row.kind} `{row.name}`, {verb}: {_short(why)}"
        for row in built
        for verb, why in row.why.items()
        if verb != "diagnose"
    ]
    lines += ["", "### Every type", "", "| kind | type | " + " | ".join(VERBS) + " |"]
    lines += ["|---" * (2 + len(VERBS)) + "|", *(row.line for row in built)]
    return "\n".join(lines)


def _short(why: str) -> str:
    """Keep the end of a long reason, where the run's own words are."""
    why = why.rpartition("found by running: ")[2].rstrip(")") if "found by running" in why else why
    return why[:160].replace("|", "/").replace("<", "(").replace(">", ")")


def lost(rows: Sequence[Row], page: str) -> list[str]:
    """Name the listed types that a verb no longer reaches, or reaches at fewer positions."""
    listed = {
        tuple(cells[:2]): cells[2:]
        for line in page.split(BEGIN)[-1].splitlines()
        if len(cells := [each.strip() for each in line.strip("| ").split("|")]) == 6
    }
    found = []
    for row in rows:
        before = listed.get((row.kind, row.name))
        now = [each.strip() for each in row.line.strip("| ").split("|")][2:]
        if before and row.built and any(_less(a, b) for a, b in zip(now, before, strict=True)):
            found.append(f"{row.kind} {row.name}: {' '.join(before)} → {' '.join(now)}")
    return found


def listed_rows(page: str) -> list[Row]:
    """Read the rows of a page again, so that some of them can be made anew."""
    made = page.split(BEGIN)[-1].split(END)[0]
    whys: dict[tuple[str, str], dict[str, str]] = {}
    for line in made.splitlines():
        if line.startswith("- ") and "`" in line:
            kind, name, rest = line.removeprefix("- ").split("`", 2)
            verb, _, why = rest.removeprefix(", ").partition(": ")
            whys.setdefault((kind.strip(), name), {})[verb] = why
    rows = []
    for line in made.split("### Every type")[-1].splitlines():
        kind, *cells = (each.strip() for each in line.strip("| ").split("|"))
        if kind not in KINDS:
            continue
        name, *cells = cells
        reached = {verb: cell != "–" for verb, cell in zip(VERBS, cells, strict=True)}
        count = int(cells[0][0]) if reached["insert"] else 0
        whole = whys.get((kind, name), {})
        rows.append(Row(kind, name, positions=POSITIONS[:count], reached=reached, why=whole))
    return rows


def merged(rows: Sequence[Row], page: str) -> list[Row]:
    """Put new rows over those of a page, in the library's order; what it lists and lacks is added.

    Args:
        rows: Of this run.
        page: Which holds the others.
    """
    known = {(row.kind, row.name): row for row in (*listed_rows(page), *rows)}
    missing = Row("", "", built=False)
    return [
        known.get((kind, name), replace(missing, kind=kind, name=name))
        for kind, name, _ in model_types()
    ]


def try_all(listed: Sequence[tuple[str, str, str]], jobs: int, keep: Path | None) -> list[Row]:
    """Try every type that no kept row stands for, and keep each as it comes."""
    done: dict[tuple[str, str], Row] = {}
    if keep is not None and keep.is_file():
        kept = [Row(**json.loads(line)) for line in keep.read_text(encoding="utf-8").splitlines()]
        done = {(row.kind, row.name): row for row in kept}
    left = [each for each in listed if each[:2] not in done]
    with ProcessPoolExecutor(jobs) as pool:
        for row in pool.map(examine, *zip(*left, strict=True)) if left else ():
            done[row.kind, row.name] = row
            print(row.line, *row.why.values(), row.crash, file=sys.stderr, flush=True)
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
    return [done[each[:2]] for each in listed]


def _less(now: str, before: str) -> bool:
    order = ["–", "✓"]
    if before in order:
        return now in order and order.index(now) < order.index(before)
    return now == "–" or int(now[0]) < int(before[0])


def main() -> int:
    """Try all, print the table, judge the bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a type is lost")
    parser.add_argument("--fill", action="store_true", help="write the table into docs/reach.md")
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="types or kinds to try")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="rows done, to go on from")
    arguments = parser.parse_args()
    chosen = set(arguments.only or ())
    listed = [each for each in model_types() if not chosen or {each[0], each[1]} & chosen]
    rows = try_all(listed, arguments.jobs, arguments.keep)
    page = PAGE.read_text(encoding="utf-8")
    text = table(merged(rows, page) if chosen and arguments.fill else rows)
    print(text)
    gone, crashes = lost(rows, page), [row for row in rows if row.crash]
    if arguments.fill:
        before, rest = page.split(BEGIN)
        beside = PAGE.with_suffix(".partial")
        whole = f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}"
        beside.write_text(whole, encoding="utf-8")
        beside.replace(PAGE)
    for row in crashes:
        print(f"crash: {row.kind} {row.name}\n{row.crash}", file=sys.stderr)
    built = [row for row in rows if row.built]
    shares = {
        verb: sum(row.reached.get(verb, False) for row in built) / len(built) for verb in VERBS
    }
    print("\n" + ", ".join(f"{verb} {share:.1%}" for verb, share in shares.items()))
    print(f"{len(crashes)} crashes; lost: {'; '.join(gone) or 'none'}")
    short = not chosen and min(shares.values()) < REACHED
    return 1 if arguments.check and (crashes or gone or short) else 0


if __name__ == "__main__":
    sys.exit(main())
