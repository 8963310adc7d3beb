"""The ``depthpde`` command: one file a verb, each a thin call."""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from depthpde import __version__
from depthpde.cli import (
    audit,
    bench,
    causality,
    dash,
    data,
    demo,
    doctor,
    env,
    report,
    simulate,
    theory,
    train,
    verify,
)
from depthpde.cli.experiments import protocol, reproduce, sweep
from depthpde.cli.shell import completion
from depthpde.errors import check_name, nearest

EXAMPLES = """examples:
  depthpde demo                                             a real model, three small ones, a page
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
    "simulate": simulate,
    "data": data,
    "train": train,
    "sweep": sweep,
    "protocol": protocol,
    "doctor": doctor,
    "audit": audit,
    "causality": causality,
    "verify": verify,
    "bench": bench,
    "env": env,
    "completion": completion,
}


class Parser(argparse.ArgumentParser):
    """The parser of a verb or an action: an error is one line, by the verb it belongs to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse every word: one that nothing takes is refused, not handed back."""
        words = list(sys.argv[1:] if args is None else args)
        self._check_options(words)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self._refuse(rest[0])
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Describe what is wrong and where to read more, and exit with 2."""
        joint = " " if message.endswith("?") else "; "
        self.exit(2, f"{self.prog}: {message}{joint}see {self.prog} --help\n")

    def _check_options(self, words: Sequence[str]) -> None:
        """Refuse an unknown option before anything that is missed because of it."""
        for word in words:
            inner = self._subparsers is not None and not word.startswith("-")
            if word == "--" or inner:  # what follows is no option, or the action's own
                return
            name = word.partition("=")[0]
            known = any(each.startswith(name) for each in self._option_string_actions)
            if word.startswith("--") and " " not in word and not known:
                self._refuse(word)

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"unexpected word {word!r}")
        name = word.partition("=")[0]
        known = {each.lstrip("-"): each for each in self._option_string_actions}
        near = nearest(name.lstrip("-"), known)
        hint = "" if near is None else f"; did you mean {known[near]}?"
        self.error(f"unknown option {name}{hint}")


def parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command without importing torch."""
    top = Parser(
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
        verb.set_defaults(run=module.run, top=top)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        0 when all is well, 1 when a check failed, 2 for wrong input, 3 for what nobody foresaw (a
        model that fails by itself, a fault of ours), 130 when interrupted.
    """
    _prepare_streams()
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
    except KeyboardInterrupt as error:
        print("interrupted", file=sys.stderr)
        return 128 + int(getattr(error, "signal", 2))
    except BrokenPipeError:  # the reader of our output has seen enough, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        if arguments.debug:
            raise
        print(f"depthpde {arguments.verb}: {_told(error)}", file=sys.stderr)
        _drop_output()
        return 2
    except MemoryError:
        print(
            f"depthpde {arguments.verb}: out of memory; ask for less at once, such as a smaller "
            "--shape or fewer --workers",
            file=sys.stderr,
        )
        return 3
    except Exception:
        traceback.print_exc()
        return 3
    return code


def _prepare_streams() -> None:
    """Give a command both streams, and let no letter that a terminal lacks end it.

    Python has no stream where the shell has closed it (``>&-``); what is printed then goes nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Forget what cannot be written any more, as on /dev/full: leaving would try it again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: ValueError | OSError) -> str:
    """Return what an error says; an error of the system names its file, not its number."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    words, file = error.strerror, error.filename
    if words == os.strerror(error.errno):
        words = f"cannot be read or written ({words}); name another, or let --debug show where"
    return f"a file: {words}" if file is None else f"{os.fsdecode(file)}: {words}"


if __name__ == "__main__":
    sys.exit(main())
