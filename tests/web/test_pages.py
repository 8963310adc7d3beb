from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from depthpde.pages.style import style_sheet
from depthpde.web.pages import KINDS, Pages, digest, static_file


def test_the_look_is_that_of_every_page() -> None:
    found = static_file("style.css")
    assert found is not None
    assert found[0].startswith(style_sheet().encode())
    assert b".plot" in found[0]


def test_every_file_that_pages_need_is_there() -> None:
    for name, kind in KINDS.items():
        found = static_file(name)
        assert found is not None
        assert (len(found[0]) > 100, found[1]) == (True, kind)


@pytest.mark.parametrize(
    "name", ["", "..", "../pages.py", "pages.py", "dash.js/", "static/dash.js"]
)
def test_no_other_file_is(name: str) -> None:
    assert static_file(name) is None


def test_everything_given_to_a_page_is_escaped() -> None:
    page = Pages("<folder>").render("wrong.html", here="", heading="<b>", words="'\"&")
    assert "&lt;folder&gt;" in page
    assert "<h1>&lt;b&gt;</h1>" in page
    assert "&#39;&#34;&amp;" in page


def test_a_page_that_lacks_something_says_so() -> None:
    with pytest.raises(UndefinedError, match="'words' is undefined"):
        Pages("folder").render("wrong.html", here="", heading="")


def test_states_that_differ_have_different_names() -> None:
    assert len({digest("a", "b"), digest("ab"), digest("a"), digest("a", "", "b")}) == 4
