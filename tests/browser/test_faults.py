"""What the page does when something is wrong: against the fake server, which can be told to break."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visit import Visit, visiting

pytestmark = pytest.mark.browser


def test_a_frame_with_a_wrong_digest_is_not_painted(fake_visit: Visit) -> None:
    fake_visit.until_frame(2)
    watch = """() => {
        window.painted = [];
        const stage = document.getElementById("stage");
        new MutationObserver((changes) => window.painted.push(...changes.map((change) => Number(change.oldValue))))
            .observe(stage, { attributeFilter: ["data-frame"], attributeOldValue: true });
    }"""
    fake_visit.page.evaluate(watch)

    fake_visit.fault("damage")

    alarm = fake_visit.page.locator("#alarm")
    expect(alarm).to_contain_text("was not shown")
    number = int(alarm.inner_text().split()[1].replace(",", ""))
    fake_visit.until_frame(number + 3)
    painted = fake_visit.page.evaluate("() => window.painted")
    assert number not in painted
    assert {number + 1, number + 2} <= set(painted)
    fake_visit.sees("#frames", r"0 missing · 0 repeated · 1 withheld")


def test_a_page_that_lost_its_connection_comes_back_to_the_same_world(fake_visit: Visit) -> None:
    fake_visit.walk("ArrowRight", 2)
    fake_visit.page.keyboard.down("ArrowRight")
    fake_visit.until("() => document.getElementById('stage').dataset.pose !== '0,2'")

    fake_visit.fault("drop")

    fake_visit.sees("#status", "Reconnecting")
    fake_visit.sees("#status", "^$")
    x = fake_visit.pose[1]
    fake_visit.until("x => Number(document.getElementById('stage').dataset.pose.split(',')[1]) > x + 1", x)
    fake_visit.page.keyboard.up("ArrowRight")
    assert fake_visit.frames["repeated"] == 0


def test_a_second_page_takes_the_controls_and_the_first_says_so(browser: Browser, fake_visit: Visit) -> None:
    page = browser.new_page()
    page.goto(fake_visit.page.url)
    fake_visit.sees("#notice", "Another page took the controls. You are watching")
    fake_visit.until_frame(fake_visit.frame + 4)
    fake_visit.fault("drop")
    fake_visit.sees("#notice", r"^You are watching\. Play here takes the controls\.")
    expect(page.locator("#notice")).not_to_contain_text("watching")
    fake_visit.page.get_by_role("button", name="Play here").click()
    expect(fake_visit.page.locator("#notice")).not_to_contain_text("watching")
    fake_visit.walk("ArrowRight", 1)
    expect(page.locator("#notice")).to_contain_text("Another page took the controls")
    page.close()


def test_a_page_that_watches_says_nothing_of_who_plays_when_the_other_has_gone(
    browser: Browser, fake_visit: Visit
) -> None:
    page = browser.new_page()
    page.goto(fake_visit.page.url)
    fake_visit.sees("#notice", "You are watching")
    page.close()
    fake_visit.until_frame(fake_visit.frame + 2)
    assert "plays" not in fake_visit.text("#notice")
    fake_visit.page.get_by_role("button", name="Play here").click()
    expect(fake_visit.page.locator("#notice")).not_to_contain_text("watching")
    fake_visit.walk("ArrowRight", 1)


def test_after_a_reload_the_page_knows_what_was_done_before(fake_visit: Visit) -> None:
    page = fake_visit.page
    fake_visit.tap("Space")
    fake_visit.until("() => document.querySelector('[data-step=flag]').classList.contains('done')")
    fake_visit.move()

    page.reload()

    fake_visit.sees("#move-sentence", r"^No move since this page opened\.")
    fake_visit.sees("#moves-so-far", "^1 moved")
    done = page.locator("#guide .done")
    assert [step.get_attribute("data-step") for step in done.all()] == ["flag", "move"]
    fake_visit.walk("ArrowRight", 4)
    fake_visit.walk("ArrowLeft", 4)
    fake_visit.sees("#guide-end", "^Here is your flag")


def test_a_lost_world_is_told_by_an_alert_with_one_thing_to_do(fake_visit: Visit) -> None:
    fake_visit.page.locator("#break").click()
    fake_visit.sees("#move-sentence", "Your world goes on here")

    fake_visit.fault("lose")

    alert = fake_visit.page.get_by_role("alert")
    expect(alert).to_have_text("This world could not be recovered: worker-a ended and no other worker holds a copy.")
    fake_visit.sees("#move-sentence", r"^This world is over\. Nothing is left to move\.$")
    expect(fake_visit.page.locator(".worker.owner")).to_have_count(0)
    fake_visit.sees("[data-worker=worker-a] .holds", "^your world was here$")
    assert "worker-a" not in fake_visit.text("#chip")
    fake_visit.page.get_by_role("button", name="Start a new world").click()
    fake_visit.until_frame(0)


def test_an_unknown_world_is_said_to_be_gone(browser: Browser, fake_server: str) -> None:
    page = browser.new_page()
    page.goto(f"{fake_server}/play/nowhere")
    expect(page.locator("#notice")).to_contain_text("This world is not here any more")
    page.close()


def test_keys_are_let_go_when_the_page_loses_the_focus(fake_visit: Visit) -> None:
    fake_visit.page.keyboard.down("ArrowRight")
    fake_visit.until("() => document.querySelector('.key.right').classList.contains('pressed')")
    fake_visit.page.evaluate("() => window.dispatchEvent(new Event('blur'))")
    assert "pressed" not in (fake_visit.page.locator(".key.right").get_attribute("class") or "")
    fake_visit.until("() => !document.querySelector('.key.right').classList.contains('applied')")
    fake_visit.until_frame(fake_visit.frame + 2)
    pose = fake_visit.pose
    fake_visit.until_frame(fake_visit.frame + 4)
    assert fake_visit.pose == pose


def test_a_thumb_walks_on_a_small_screen_and_nothing_overflows(browser: Browser, fake_server: str) -> None:
    small = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with visiting(browser, fake_server, **small) as visit:
        for key in visit.page.locator(".key").all():
            box = key.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 48
        visit.page.locator(".key.down").tap()
        visit.until("() => document.getElementById('stage').dataset.pose !== '0,0'")
        visit.move()
        assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
