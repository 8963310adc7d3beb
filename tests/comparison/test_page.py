"""The page holds picture, verdict and what next, and refers to nothing outside."""


def test_the_page_is_one_small_file(compared, tmp_path):
    page = compared.save(tmp_path / "deep" / "compare.html").read_text()
    assert len(page) < 200_000
    assert page.count("<svg") == 3
    assert "What was found" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert page.index("seeds=7") < page.index("<table")
