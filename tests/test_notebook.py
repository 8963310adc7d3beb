"""Outside a kernel there is no live output; tests/test_notebooks.py runs it inside one."""

import sys
import types

from depthpde.notebook import _Text, live_output


def test_outside_a_kernel_nothing_is_shown(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert live_output() is None
    terminal = types.ModuleType("IPython")
    terminal.get_ipython = lambda: None  # as in a process that only imported it
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert live_output() is None


def test_a_text_is_escaped_for_a_page():
    assert _Text("a < b")._repr_html_() == "<pre>a &lt; b</pre>"
    assert repr(_Text("a < b")) == "a < b"
