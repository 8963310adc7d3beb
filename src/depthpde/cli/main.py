"""The ``depthpde`` command: one file a verb, each a thin call."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from depthpde import __version__
from depthpde.cli import (
    bench,
    causality,
    dash,
    data,
    demo,
    doctor,
    env,
    report,
    reproduce,
    sweep,
    theory,
    train,
)
from depthpde.errors import check_name

EXAMPLES = """examples:
  depthpde demo                                             four small models, a table, a page
  depthpde train listops-mini --position after_embedding    Ctrl-C saves, the same goes on
  depthpde doctor --hf PATH                                 what goes wrong inside a model
  depthpde report RESULTS                                   what a folder of runs has shown

depthpde VERB --help has more of each."""
VERBS = {
    "demo": demo,
    "reproduce": reproduce,
    "report": report,
    "dash": dash,
    "theory": theory,
    "data": data,
    "train": train,
    "sweep": sweep,
    "doctor": doctor,
    "causality": causality,
    "bench": bench,
    "env": env,
}


def parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command without importing torch."""
    top = argparse.ArgumentParser(
        prog="depthpde",
        description="Transformers as reaction-diffusion PDEs: network depth is PDE time.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"depthpde {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, module in VERBS.items():
        verb = verbs.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(verb)
        verb.add_argument("--debug", action="store_true", help="show the traceback of an error")
        verb.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        0 when all is well, 1 when a check failed, 2 for wrong input, 130 when interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        parser().print_help()
        return 2
    if not words[0].startswith("-"):
        try:
            check_name("VERB", words[0], VERBS)
        except ValueError as error:
            print(f"depthpde: {error}", file=sys.stderr)
            return 2
    arguments = parser().parse_args(words)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"depthpde {arguments.verb}: {error}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
