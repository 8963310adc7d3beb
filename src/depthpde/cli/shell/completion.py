"""``depthpde completion``: verbs and options for the TAB key of bash, zsh and fish."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

SUMMARY = "print what makes TAB complete verbs and options in bash, zsh or fish"
EXAMPLES = """examples:
  depthpde completion bash >> ~/.bashrc
  depthpde completion zsh >> ~/.zshrc
  depthpde completion fish > ~/.config/fish/completions/depthpde.fish

It is written from the command's own options; print it again after an update."""
SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def run(args: argparse.Namespace) -> int:
    """Print the completion of one shell."""
    verbs = words_of(args.top)
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](verbs), end="")
    return 0


def words_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return verb → its actions and long options, as the parser itself has them.

    Args:
        parser: Of the whole command.
    """
    return {verb: _words(inner) for verb, inner in _inner(parser).items()}


def _words(parser: argparse.ArgumentParser) -> list[str]:
    options = [
        word
        for action in parser._actions
        for word in action.option_strings
        if word.startswith("--")
    ]
    actions = _inner(parser)
    below = [word for each in actions.values() for word in _words(each)]
    choices = [str(each) for action in parser._actions for each in _choices(action)]
    return list(dict.fromkeys([*actions, *choices, *options, *below]))


def _choices(action: argparse.Action) -> list[str]:
    plain = not action.option_strings and not isinstance(action, argparse._SubParsersAction)
    return [str(each) for each in action.choices] if plain and action.choices else []


def _inner(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Mapping[str, argparse.ArgumentParser] = action.choices
            return found
    return {}


def _bash(verbs: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f'    {verb}) words="{" ".join(each)}" ;;' for verb, each in verbs.items())
    return f"""_depthpde() {{
  local words="{" ".join(verbs)}"
  [ "$COMP_CWORD" -gt 1 ] && case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _depthpde depthpde
"""


def _zsh(verbs: Mapping[str, list[str]]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(verbs)}"


def _fish(verbs: Mapping[str, list[str]]) -> str:
    lines = [f"complete -c depthpde -n __fish_use_subcommand -f -a '{' '.join(verbs)}'"]
    for verb, words in verbs.items():
        seen = f"complete -c depthpde -n '__fish_seen_subcommand_from {verb}'"
        options = [word for word in words if word.startswith("--")]
        plain = [word for word in words if not word.startswith("--")]
        lines += [f"{seen} -l {word[2:]}" for word in options]
        lines += [f"{seen} -a '{' '.join(plain)}'"] if plain else []
    return "\n".join(lines) + "\n"
