"""The page in a real browser: on the real server with a procedural engine, or on the fake one."""

import hashlib

import pytest
from playwright.sync_api import expect

from tests.browser.visit import Visit

pytestmark = pytest.mark.browser


def test_a_first_visit_shows_a_world_that_goes_on_and_can_be_found_again(visit: Visit) -> None:
    page = visit.page
    visit.sees("#notice", "Click or press a key to play")
    visit.until_frame(visit.frame + 6)
    visit.sees("#this-badge", "^checked here$")
    session = visit.session
    visit.walk("ArrowRight", 2)

    page.reload()

    visit.until("() => document.getElementById('stage').dataset.pose === '0,2'")
    assert visit.session == session


def test_one_press_is_one_tile_and_the_picture_says_which_key_it_used(visit: Visit) -> None:
    visit.walk("ArrowDown", 1)
    visit.until_frame(visit.frame + 4)
    assert visit.pose == (1, 0)
    visit.walk("ArrowLeft", 3)
    assert visit.pose == (1, -3)
    visit.sees("#response", r"\d m?s")
    visit.page.keyboard.down("d")
    visit.until("() => document.querySelector('.key.right').classList.contains('applied')")
    visit.page.keyboard.up("d")


def test_a_move_changes_the_owner_and_nothing_else(visit: Visit) -> None:
    before, pose = visit.owner, visit.pose
    visit.walk("ArrowRight", 1)

    visit.move()

    visit.sees("#move-sentence", r"parts are identical \(checked\)")
    assert visit.owner != before
    names = visit.page.locator("#phases li").all_inner_texts()
    assert [name.rsplit(" ", 2)[0] for name in names] == ["Copying", "Holding", "Checking", "Handing over", "Moved"]
    assert visit.page.locator("#bar span").count() == len(names)
    visit.sees("#state-badge", r"^identical \(checked\)$")
    visit.walk("ArrowLeft", 1)
    assert visit.pose == pose
    visit.sees("#check-badge", "^equal, checked here$")
    visit.sees("#equal-blocks", r"^(\d+) of \1$")
    assert (visit.frames["missing"], visit.frames["repeated"]) == (0, 0)


def test_a_damaged_move_changes_nothing_and_says_so(visit: Visit) -> None:
    visit.walk("ArrowRight", 1)
    before = visit.owner

    visit.page.locator("#break").click()

    visit.sees("#move-sentence", r"^Not moved, nothing changed\.")
    assert visit.owner == before
    visit.sees("#moves-so-far", "0 moved · 0 refused · 1 aborted")
    visit.walk("ArrowLeft", 1)
    assert visit.frames["missing"] == 0


def test_a_copy_without_state_walks_into_another_place_and_leaves_the_session_alone(visit: Visit) -> None:
    visit.walk("ArrowRight", 9)
    pose = visit.pose

    visit.page.locator("#recover").click()

    visit.sees("#recovery-sentence", r"[1-9]\d* of the \d+ tiles you had seen there differ")
    visit.walk("ArrowRight", 1)
    assert visit.pose == (pose[0], pose[1] + 1)
    assert (visit.frames["missing"], visit.frames["repeated"]) == (0, 0)
    visit.sees("#recovery-sentence", "Your world was not touched")


def test_a_world_moves_by_itself_every_few_seconds_without_a_key(visit: Visit) -> None:
    visit.page.locator("#every-seconds").select_option("2")
    visit.page.locator("#every").click()
    assert visit.page.locator("#every").get_attribute("aria-pressed") == "true"
    visit.sees("#moves-so-far", r"^[2-9] moved · 0 refused · 0 aborted · 0 lost$")
    assert (visit.frames["missing"], visit.frames["repeated"]) == (0, 0)
    visit.page.locator("#every").click()
    assert visit.page.locator("#every").get_attribute("aria-pressed") == "false"


def test_a_world_rests_without_a_key_and_goes_on_where_it_stood(visit: Visit) -> None:
    visit.walk("ArrowRight", 1)
    visit.sees("#status", "The world rests. It stands still and forgets nothing")
    visit.sees("#rate", "^resting$")
    visit.sees("#rate-note", "^$")
    visit.walk("ArrowRight", 1)
    visit.sees("#status", "^$")
    assert visit.pose == (0, 2)
    assert (visit.frames["missing"], visit.frames["repeated"]) == (0, 0)


def test_a_saved_frame_has_the_digest_that_the_page_names(visit: Visit) -> None:
    with visit.page.expect_download() as download:
        visit.page.locator("#save").click()
    digest = hashlib.sha256(download.value.path().read_bytes()).hexdigest()
    expect(visit.page.locator("#saved")).to_contain_text(digest)
