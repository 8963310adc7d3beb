from __future__ import annotations

from pathlib import Path

import pytest

from depthpde.web.security import HEADERS, Access, is_loopback, make_access, own_names
from web.conftest import Site, serving

TOKEN = "a-token-of-our-own-0123"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "127.8.8.8"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert make_access(host, None).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.4", "::", "node7", "localhost.evil.org"])
def test_any_other_address_gets_a_token(host: str) -> None:
    first, second = make_access(host, None).token, make_access(host, None).token
    assert first is not None
    assert len(first) >= 40
    assert first != second


def test_refuses_another_address_without_a_token() -> None:
    with pytest.raises(ValueError, match=r"`--host` 0\.0\.0\.0 can be reached by others"):
        Access("0.0.0.0", None)


def test_refuses_a_token_that_can_be_guessed() -> None:
    with pytest.raises(ValueError, match="`--token` must have at least 16 letters, got 4"):
        make_access("127.0.0.1", "1234")


def test_refuses_a_token_that_does_not_fit_into_an_address() -> None:
    with pytest.raises(ValueError, match="`--token` must be printable ASCII"):
        make_access("127.0.0.1", "schlüssel-schlüssel")


@pytest.mark.parametrize(
    "header", ["localhost", "localhost:9000", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1"]
)
def test_loopback_goes_by_its_own_names_at_any_port(header: str) -> None:
    assert Access("127.0.0.1", None).admits_host(header)


@pytest.mark.parametrize(
    "header", ["", "evil.org", "evil.org:8765", "localhost.evil.org", "10.0.0.1", "[::2]", "127.1"]
)
def test_loopback_goes_by_no_other_name(header: str) -> None:
    assert not Access("127.0.0.1", None).admits_host(header)


def test_an_open_address_goes_by_addresses_and_its_own_name_only() -> None:
    access = Access("0.0.0.0", TOKEN)
    assert access.admits_host("192.168.0.4:8765")
    assert access.admits_host("localhost")
    assert all(access.admits_host(f"{each}:8765") for each in own_names())
    assert not access.admits_host("evil.org")
    assert Access("node7.cluster", TOKEN).admits_host("node7.cluster:80")


def test_tokens_are_compared_whole() -> None:
    access = Access("127.0.0.1", TOKEN)
    assert access.admits_token(TOKEN)
    for wrong in (None, "", TOKEN[:-1], TOKEN + "x", "é" * 23, "\udcff"):
        assert not access.admits_token(wrong)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading_is_answered(site: Site, method: str) -> None:
    status, headers, _ = site.get("/", method=method)
    assert status == 405
    assert headers["allow"] == "GET, HEAD"


def test_head_is_answered_without_a_body(site: Site) -> None:
    status, _, body = site.get("/", method="HEAD")
    assert (status, body) == (200, "")


def test_a_foreign_name_is_refused(site: Site) -> None:
    status, _, body = site.get("/", host="evil.org")
    assert status == 421
    assert "does not go by that name" in body


@pytest.mark.parametrize("path", ["/", "/theory", "/compare", "/nowhere", "/static/dash.js"])
def test_every_answer_carries_the_policy(site: Site, path: str) -> None:
    _, headers, _ = site.get(path)
    for name, value in HEADERS.items():
        if name != "cache-control":
            assert headers[name] == value
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_a_refusal_carries_the_policy_too(site: Site) -> None:
    assert "content-security-policy" in site.get("/", host="evil.org")[1]


def test_a_token_opens_the_door_and_leaves_the_address(shared_results: Path) -> None:
    with serving(shared_results, TOKEN) as locked:
        assert locked.get("/")[0] == 401
        assert locked.get("/theory")[0] == 401
        assert locked.get("/static/dash.js")[0] == 401
        assert locked.get("/?token=wrong-wrong-wrong-wrong")[0] == 401
        status, headers, _ = locked.get(f"/compare?grid=placement&token={TOKEN}")
        assert (status, headers["location"]) == (303, "/compare?grid=placement")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert locked.get("/", cookie=cookie.split(";")[0])[0] == 200
        assert locked.get("/", cookie="depthpde-1=" + TOKEN)[0] == 401
        assert locked.get("/", authorization=f"Bearer {TOKEN}")[0] == 200
        assert locked.get("/", authorization=f"Basic {TOKEN}")[0] == 401


def test_a_token_never_sends_a_visitor_elsewhere(shared_results: Path) -> None:
    with serving(shared_results, TOKEN) as locked:
        for path in ("//evil.org/x", "/\\evil.org", "///evil.org"):
            location = locked.get(f"{path}?token={TOKEN}")[1]["location"]
            assert location.startswith("/")
            assert location[1:2] not in ("/", "\\")


@pytest.mark.parametrize(
    "header",
    [
        "localhost:evil.org", "localhost:80:90", "localhost/", "localhost@evil.org", " localhost",
        "[::1]evil.org", "[::1", "::1", "localhost:", "localhost:999999", "127.0.0.1\t",
        "localhost\n", "localhost, evil.org", "٤localhost",
    ],
)  # fmt: skip
def test_a_host_header_with_anything_around_a_name_is_refused(header: str) -> None:
    assert not Access("127.0.0.1", None).admits_host(header)
