"""The main job on the real thing: the real server, its trained world, a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.visit import Visit, visiting

pytestmark = pytest.mark.browser


@pytest.fixture
def visit(browser: Browser, island_server: str) -> Iterator[Visit]:
    with visiting(browser, island_server) as visit:
        yield visit


def test_a_flag_is_still_there_after_a_move(visit: Visit) -> None:
    visit.walk("ArrowRight", 5)
    visit.tap("Space")
    visit.until("() => document.querySelector('[data-step=flag]').classList.contains('done')")
    visit.walk("ArrowRight", 1)
    before = visit.page.evaluate(FLAG_TILE)

    visit.move_until_it_moves()

    visit.walk("ArrowDown", 6)
    visit.walk("ArrowUp", 6)
    visit.sees("#check-badge", "^equal, checked here$")
    visit.sees("#state-badge", r"^identical \(checked\)$")
    assert (visit.frames["missing"], visit.frames["repeated"]) == (0, 0)
    after = visit.page.evaluate(FLAG_TILE)
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) <= 24


# The pixels of the tile left of the crosshair: that of the flag, seen from one step to its right.
FLAG_TILE = """() => {
    const copy = new OffscreenCanvas(64, 64).getContext("2d", { willReadFrequently: true });
    copy.drawImage(document.getElementById("picture"), 0, 0);
    return [...copy.getImageData(24, 32, 8, 8).data];
}"""
