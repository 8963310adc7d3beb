import io
import re

import pytest

from depthpde.training.loop import train
from depthpde.training.progress import Progress
from training.counting import make_config, make_model


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, split, validation, **model):
    built, config = make_model(**model), make_config(updates=12)
    with Progress(built, config, stream=stream) as progress:
        train(built, split, config, validation=validation, callback=progress)
    return stream.getvalue()


def test_a_log_gets_one_quiet_line_a_point(split, validation):
    lines = shown(io.StringIO(), split, validation).splitlines()
    assert [line.split(" · ")[0] for line in lines] == [
        "update 4/12",
        "update 8/12",
        "update 12/12",
    ]
    wanted = (
        r"update 8/12 · loss \d+\.\d{4} · accuracy \d+\.\d % · best \d+\.\d % · "
        r"[\d,]+ tokens/s · \d+:\d\d left · r 0\.\d{3}"
    )
    assert re.fullmatch(wanted, lines[1])
    assert "\x1b" not in "".join(lines), "no terminal codes in a log"


def test_a_terminal_gets_a_bar_that_ends_full(split, validation):
    text = shown(Terminal(), split, validation)
    assert "12/12" in text
    assert re.search(r"loss [^\n]*\n[^\n]*left · r 0\.\d{3}", text), "all of it fits 80 columns"


@pytest.mark.parametrize(
    ("positions", "wanted"),
    [((), r"left$"), (("after_embedding", "after_ffn"), r"r 0\.\d{3} … 0\.\d{3}$")],
)
def test_ratios_are_shown_where_there_are_some(split, validation, positions, wanted):
    lines = shown(io.StringIO(), split, validation, positions=positions).splitlines()
    assert re.search(wanted, lines[-1])
