"""The page's pure modules, run where they will run: in the browser."""

import hashlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser, fake_server: str) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(f"{fake_server}/viewer/icon.svg")
    yield page
    page.close()


@pytest.mark.parametrize("length", [0, 1, 55, 56, 63, 64, 65, 12288])
def test_the_bundled_digest_is_sha256(page: Page, length: int) -> None:
    data = bytes((7 * i + length) % 256 for i in range(length))
    taken = page.evaluate(
        """async (bytes) => {
            const [{ sha256 }, { hex }] = [await import("/viewer/sha256.js"), await import("/viewer/wire.js")];
            return hex(sha256(new Uint8Array(bytes)));
        }""",
        list(data),
    )
    assert taken == hashlib.sha256(data).hexdigest()


def test_frames_that_never_came_are_missing_and_those_that_come_twice_are_repeated(page: Page) -> None:
    counts = page.evaluate(
        """async () => {
            const { FrameCounter } = await import("/viewer/counter.js");
            const counter = new FrameCounter();
            counter.connected();
            const fresh = [4, 5, 6, 6, 9].map((number) => counter.arrived(number));
            counter.connected();
            const resumed = [8, 9, 10, 10].map((number) => counter.arrived(number));
            return [fresh, resumed, counter.missing, counter.repeated];
        }"""
    )
    assert counts == [[True, True, True, False, True], [False, False, True, False], 2, 2]


def test_key_changes_are_numbered_once_and_keys_still_down_are_pressed_again(page: Page) -> None:
    sent = page.evaluate(
        """async () => {
            const { KeyChanges } = await import("/viewer/changes.js");
            const changes = new KeyChanges();
            changes.press("up", "ArrowUp");
            changes.resume(7);
            changes.press("up", "KeyW");
            changes.release("up", "ArrowUp");
            changes.press("left", "KeyA");
            const first = changes.take();
            changes.pause();
            changes.release("left", "KeyA");
            changes.press("flag", "Space");
            const silent = changes.take();
            changes.resume(20);
            changes.releaseAll();
            return [first, silent, changes.take()];
        }"""
    )
    first = [[7, "up", True], [8, "left", True]]
    assert sent == [first, [], [[20, "up", True], [21, "flag", True], [22, "up", False], [23, "flag", False]]]


def test_the_middle_tile_is_left_out_of_the_map_until_it_is_seen_elsewhere(page: Page) -> None:
    found = page.evaluate(
        """async () => {
            const { Atlas } = await import("/viewer/atlas.js");
            const [atlas, image] = [new Atlas(), new ImageData(64, 64)];
            atlas.add(image, { y: 0, x: 0 }, 1);
            const before = atlas.tiles.has("0,0");
            atlas.add(image, { y: 0, x: 1 }, 2);
            const other = new ImageData(64, 64);
            other.data.fill(255);
            return [before, atlas.tiles.has("0,0"), atlas.tiles.size, atlas.compare(other, { y: 0, x: 9 })];
        }"""
    )
    assert found == [False, True, 72, {"known": 0, "different": 0}]


def test_the_servers_words_are_told_in_a_visitors(page: Page) -> None:
    sentence = "Not moved, nothing changed. The session was not frozen in time. Your world goes on at worker-1."
    told = page.evaluate(
        """async (sentence) => {
            const { lossWords, resultWords } = await import("/viewer/words.js");
            return [resultWords({ outcome: "aborted", sentence })[1], lossWords("worker worker-1 ended")];
        }""",
        sentence,
    )
    assert told == [
        "The world was not stopped in time, so nothing was moved. Your world goes on at worker-1.",
        "This world could not be recovered: worker-1 ended.",
    ]
