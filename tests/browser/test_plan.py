"""The next move, said before it is made: the link's speed, the choice, its terms, and what came of it."""

import pytest
from playwright.sync_api import expect

from tests.browser.visit import Visit

pytestmark = pytest.mark.browser


def slide(visit: Visit, steps: int) -> None:
    """Move the slider by its keys."""
    visit.page.locator("#link").focus()
    for _ in range(steps):
        visit.page.keyboard.press("ArrowRight")


def test_the_plan_names_the_strategy_its_pause_and_its_terms(fake_visit: Visit) -> None:
    fake_visit.sees("#plan-sentence", r"^By boundary copy\. [\d.]+ MB, a pause of about 15 ms\.$")
    fake_visit.sees("#plan-others", r"^replay: 21 ms$")
    names = fake_visit.page.locator("#plan-terms li").all_inner_texts()
    assert [name.split()[0] for name in names] == ["freeze", "land", "verify", "commit"]
    assert fake_visit.page.locator("#plan-bar span").count() == 4


def test_a_slower_link_changes_the_plan_and_says_its_speed(fake_visit: Visit) -> None:
    slide(fake_visit, 2)
    expect(fake_visit.page.locator("#link")).to_have_attribute("aria-valuetext", "1 Gb/s")
    fake_visit.sees("#link-speed", "^1 Gb/s$")
    fake_visit.sees("#plan-sentence", r"^By replay\. .* a pause of about 21 ms, after 8\.0 s that you play on\.$")
    fake_visit.sees("#plan-others", r"^boundary copy: too slow \(912 ms\)$")


def test_a_link_on_which_nothing_would_do_is_told_with_what_would(fake_visit: Visit) -> None:
    slide(fake_visit, 5)
    fake_visit.sees(
        "#plan-sentence", r"^It would be refused\. It would take a path of 2\.10 MB/s \(now 1\.25 MB/s\)\.$"
    )
    expect(fake_visit.page.locator("#plan-bar")).to_have_class("bar thin refused")


def test_what_had_been_expected_stands_beside_what_came_of_it(fake_visit: Visit) -> None:
    fake_visit.move()
    fake_visit.sees("#plan-after", r"^Expected 8\.1 ms, measured 7\.6 ms by boundary copy\.$")
    fake_visit.page.locator("#break").click()
    fake_visit.sees("#move-sentence", "^Not moved")
    fake_visit.sees("#plan-after", "^$")


def test_the_arrow_keys_of_the_slider_are_not_the_worlds(fake_visit: Visit) -> None:
    slide(fake_visit, 3)
    fake_visit.until_frame(fake_visit.frame + 4)
    assert fake_visit.pose == (0, 0)


def test_a_real_move_over_a_slow_link_takes_it_and_is_told_beside_its_expectation(visit: Visit) -> None:
    slide(visit, 1)
    visit.sees("#plan-sentence", r"^By [\w -]+\. [\d.]+ MB, a pause of about")
    visit.move_until_it_moves()
    visit.sees("#plan-after", r"^Expected [\w. ]+, measured [\w. ]+ by [\w -]+\.$")
