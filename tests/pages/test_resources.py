"""Scripts and sheets that ship with the package, and modules as one text."""

import re

import pytest

from depthpde.pages.resources import inline_modules, read_text

MODULES = ("chart.js", "diffusion.js", "instrument.js")


def test_modules_become_one_text_without_import_or_export():
    joined = inline_modules("depthpde.pages", *MODULES)
    assert not re.search(r"^(import|export)\b", joined, flags=re.M)
    for name in ("class Chart", "function measure", "function instrument"):
        assert joined.count(name) == 1


def test_no_two_modules_give_the_same_name_at_their_top():
    declared = [
        name
        for module in MODULES
        for name in re.findall(
            r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)",
            read_text("depthpde.pages", module),
            flags=re.M,
        )
    ]
    assert len(declared) > 20
    assert len(declared) == len(set(declared)), "they share one scope when joined"


def test_a_module_below_the_one_that_needs_it_is_refused():
    with pytest.raises(ValueError, match=r"chart\.js, diffusion\.js before instrument\.js"):
        inline_modules("depthpde.pages", "instrument.js", "chart.js", "diffusion.js")
    with pytest.raises(ValueError, match=r"chart\.js"):
        inline_modules("depthpde.pages", "diffusion.js", "instrument.js")


def test_a_file_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        read_text("depthpde.pages", "nothing.css")
