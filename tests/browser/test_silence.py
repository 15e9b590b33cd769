"""The page over a path that breaks in silence, and over one that breaks in the middle of an answer."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.browser.silent_path import silent_path
from tests.browser.visit import Visit, visiting

pytestmark = pytest.mark.browser

LINK = """async (story) => {
    const heard = [];
    let newest = null;
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 0;
        sent = 0;
        constructor() { newest = this; heard.push("connects"); }
        send() { this.sent++; if (story === "answered") this.onmessage({ data: '{"type": "pong"}' }); }
        close() { heard.push("closes"); }
    };
    const { Link } = await import("/viewer/link.js");
    const hear = (word) => () => heard.push(word);
    const on = { message: () => {}, frame: () => {}, waiting: hear("waits"), over: hear("over") };
    const link = new Link("s-1", on);
    if (story !== "hung") newest.readyState = 1;
    if (story === "left") link.close();
    window.told = () => heard;
    window.frame = () => newest.onmessage({ data: new ArrayBuffer(8) });
}"""
"""A link over a socket that does what its story says."""


def story(browser: Browser, server: str, name: str) -> Page:
    page = browser.new_page()
    page.clock.install()
    page.goto(f"{server}/viewer/icon.svg")
    page.evaluate(LINK, name)
    return page


@pytest.mark.parametrize("name", ["unanswered", "hung"])
def test_a_link_that_hears_nothing_for_four_pings_is_made_anew(browser: Browser, fake_server: str, name: str) -> None:
    page = story(browser, fake_server, name)
    page.clock.run_for(9_900)
    assert page.evaluate("() => told()") == ["connects"]
    page.clock.run_for(200)
    assert page.evaluate("() => told()") == ["connects", "closes", "waits"]
    page.clock.run_for(400)
    assert page.evaluate("() => told()") == ["connects", "closes", "waits", "connects"]
    page.close()


def test_a_link_whose_pings_are_answered_is_left_alone_however_long_nothing_else_comes(
    browser: Browser, fake_server: str
) -> None:
    page = story(browser, fake_server, "answered")
    page.clock.run_for(600_000)
    assert page.evaluate("() => told()") == ["connects"]
    page.close()


def test_a_link_that_hears_frames_alone_is_left_alone(browser: Browser, fake_server: str) -> None:
    page = story(browser, fake_server, "unanswered")
    for _ in range(10):
        page.clock.run_for(7_000)
        page.evaluate("() => frame()")
    assert page.evaluate("() => told()") == ["connects"]
    page.close()


def test_a_link_that_was_closed_is_not_made_anew(browser: Browser, fake_server: str) -> None:
    page = story(browser, fake_server, "left")
    page.clock.run_for(60_000)
    assert page.evaluate("() => told()") == ["connects", "closes"]
    page.close()


def test_a_page_whose_path_goes_silent_says_so_and_comes_back_when_there_is_one(
    browser: Browser, fake_server: str
) -> None:
    with silent_path(fake_server) as path, visiting(browser, path.url) as visit:
        visit.page.keyboard.down("ArrowRight")
        visit.sees("#rate", "of 8/s")
        visit.sees("#ping", "ms")
        path.hush()
        visit.sees("#rate", "^-$")
        visit.sees("#status", r"^Reconnecting \(.* s\)\. Your world is held for you\.$")
        visit.sees("#ping", "^-$")
        visit.page.wait_for_timeout(1000)
        assert path.num_in_vain > 0  # its next handshake is not answered either
        path.speak()
        visit.sees("#status", "^$")
        visit.until_frame(visit.frame + 2)
        visit.page.keyboard.up("ArrowRight")
        assert visit.frames["repeated"] == 0
        forget(visit, "closed before the connection is established")


SLOW = """async (words) => {
    const heard = [];
    window.WebSocket = class {
        static OPEN = 1;
        readyState = 1;
        constructor() {
            window.newest = this;
            setTimeout(() => words.forEach((type) => this.onmessage?.({ data: JSON.stringify({ type }) })), 100);
        }
        send() {}
        close() {}
    };
    const { Link } = await import("/viewer/link.js");
    const on = { message: () => {}, frame: () => {}, over: () => {} };
    on.waiting = (waitMs) => heard.push([link.isTooSlow, waitMs]);
    on.carries = () => heard.push("carries");
    const link = new Link("s-1", on);
    window.told = () => heard;
    window.frame = () => newest.onmessage({ data: new ArrayBuffer(8) });
    window.pushedOut = () => newest.onclose({ code: 4001 });
}"""
"""A link over sockets on which these words come, and no more."""


def slow_link(browser: Browser, server: str, *words: str) -> Page:
    page = browser.new_page()
    page.clock.install()
    page.goto(f"{server}/viewer/icon.svg")
    page.evaluate(SLOW, words)
    return page


def too_slow(page: Page) -> list[bool]:
    """Whether the link was said to be too slow at each try that was given up."""
    return [told[0] for told in page.evaluate("() => told()")]


@pytest.mark.parametrize("words", [("hello",), ("hello", "owner", "pong")])
def test_a_link_that_carries_words_and_no_frame_is_too_slow_at_the_second_try_and_is_tried_ever_less_often(
    browser: Browser, fake_server: str, words: tuple[str, ...]
) -> None:
    page = slow_link(browser, fake_server, *words)
    page.clock.run_for(90_000)
    told = page.evaluate("() => told()")
    assert [is_slow for is_slow, _ in told][:4] == [False, True, True, True]
    waits = [wait_ms for _, wait_ms in told]
    assert waits[4] > 2 * waits[0]
    assert max(waits) <= 6250
    page.close()


def test_who_is_put_out_by_the_server_without_one_frame_is_on_a_link_that_is_too_slow(
    browser: Browser, fake_server: str
) -> None:
    page = slow_link(browser, fake_server, "hello")
    for _ in range(2):
        page.clock.run_for(2_000)
        page.evaluate("() => pushedOut()")
    assert too_slow(page) == [False, True]
    page.close()


@pytest.mark.parametrize(
    ("words", "comes"),
    [((), False), (("hello", "pong", "pong"), False), (("hello",), True)],
    ids=["nothing comes", "its world rests", "a frame comes"],
)
def test_a_link_that_carries_nothing_or_more_than_words_is_never_called_too_slow(
    browser: Browser, fake_server: str, words: tuple[str, ...], *, comes: bool
) -> None:
    page = slow_link(browser, fake_server, *words)
    for _ in range(40):
        page.clock.run_for(2_000)
        if comes and page.evaluate("() => newest.came !== (newest.came = true) && newest.onmessage !== null"):
            page.evaluate("() => frame()")
    assert len(too_slow(page)) > 3
    assert not any(too_slow(page))
    page.close()


def test_a_link_carries_again_with_the_first_frame(browser: Browser, fake_server: str) -> None:
    page = slow_link(browser, fake_server, "hello")
    page.clock.run_for(25_000)
    assert too_slow(page) == [False, True]
    page.evaluate("() => frame()")
    page.evaluate("() => frame()")
    assert page.evaluate("() => told()")[2:] == ["carries"]
    page.close()


def test_a_page_to_which_no_picture_comes_says_that_its_link_is_too_slow_until_one_does(
    browser: Browser, fake_server: str
) -> None:
    with silent_path(fake_server) as path, visiting(browser, path.url) as visit:
        visit.page.keyboard.down("ArrowRight")
        visit.sees("#rate", "of 8/s")
        path.narrow = True
        path.hang_up()
        visit.page.wait_for_timeout(12_000)  # two tries
        visit.sees("#status", r"^Your link is too slow: no picture came through it in 8 s\. Trying again \(.* s\)\.")
        path.widen()
        visit.sees("#status", "^$")
        visit.until_frame(visit.frame + 2)
        visit.page.keyboard.up("ArrowRight")
        for words in ("closed before the connection is established", "net::ERR_EMPTY_RESPONSE"):  # asked as it hung up
            forget(visit, words)


def forget(visit: Visit, words: str) -> None:
    """Take back what the browser itself says of what was done to it."""
    visit.complaints[:] = [told for told in visit.complaints if words not in told]


def cut(route: Route) -> None:
    route.abort("connectionreset")


def gateway(route: Route) -> None:
    route.fulfill(status=502, body="<html>Bad Gateway</html>", content_type="text/html")


def silent_gateway(route: Route) -> None:
    route.fulfill(status=504, body="")


def half(route: Route) -> None:
    route.fulfill(status=200, body='{"outcome": "comm', content_type="application/json")


def half_a_refusal(route: Route) -> None:
    route.fulfill(status=409, body='{"error": {"mess', content_type="application/json")


BREAKS = pytest.mark.parametrize("breaks", [cut, gateway, silent_gateway, half, half_a_refusal])


@BREAKS
@pytest.mark.parametrize("button", ["#move", "#break"])
def test_a_move_whose_answer_broke_is_not_said_to_have_changed_nothing(
    fake_visit: Visit, button: str, breaks: Callable[[Route], None]
) -> None:
    fake_visit.page.route("**/move", breaks)
    fake_visit.page.locator(button).click()
    fake_visit.sees("#move-sentence", r"^It may have moved\. The server.* The mark above stands at the process")
    fake_visit.page.unroute("**/move")
    fake_visit.move()
    forget(fake_visit, "Failed to load resource")


@BREAKS
def test_a_copy_whose_answer_broke_is_not_said_to_be_none(fake_visit: Visit, breaks: Callable[[Route], None]) -> None:
    fake_visit.page.route("**/recover", breaks)
    fake_visit.page.locator("#recover").click()
    fake_visit.sees("#move-sentence", r"^A copy may have been made\. The server")
    forget(fake_visit, "Failed to load resource")


def test_a_move_that_the_server_refused_changed_nothing(fake_visit: Visit) -> None:
    refusal = '{"error": {"code": "moving", "message": "It is being moved."}}'
    fake_visit.page.route("**/move", lambda route: route.fulfill(status=409, body=refusal))
    fake_visit.page.locator("#move").click()
    fake_visit.sees("#move-sentence", r"^Not moved, nothing changed\. It is being moved\.$")
    fake_visit.may_be_refused = True
