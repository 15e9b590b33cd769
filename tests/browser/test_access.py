"""Who does not see, or does not use a mouse, or has large text, gets the same page."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visit import Visit, visiting

pytestmark = pytest.mark.browser

TAB_ORDER = ("stage", "fullscreen", "Walk up", "Walk left", "Walk down", "Walk right", "Plant or lift a flag")
THEN = ("move", "every", "every-seconds", "recover", "break", "link", "save")


def focused(page: Page) -> str:
    name: str = page.evaluate("() => document.activeElement.id || document.activeElement.getAttribute('aria-label')")
    return name


def test_everything_is_reached_by_tab_in_the_order_of_the_page(fake_visit: Visit) -> None:
    order = []
    for _ in (*TAB_ORDER, *THEN):
        fake_visit.page.keyboard.press("Tab")
        order.append(focused(fake_visit.page))
    assert order == [*TAB_ORDER, *THEN]


def test_every_control_has_a_name(fake_visit: Visit) -> None:
    for role in ("button", "combobox", "slider", "application", "img"):
        for control in fake_visit.page.get_by_role(role).all():
            snapshot = control.aria_snapshot()
            assert '"' in snapshot, f"no name: {snapshot}"


def test_escape_gives_the_keys_back_and_a_field_keeps_its_own(fake_visit: Visit) -> None:
    page = fake_visit.page
    fake_visit.walk("ArrowRight", 1)
    page.keyboard.press("Escape")
    fake_visit.sees("#status", "Keys are yours again")
    page.keyboard.press("ArrowRight")
    page.locator("#stage").press("Enter")
    fake_visit.walk("ArrowRight", 1)
    page.locator("#every-seconds").focus()
    page.keyboard.press("ArrowDown")
    fake_visit.until_frame(fake_visit.frame + 4)
    assert fake_visit.pose == (0, 2)
    expect(page.locator("#every-seconds")).to_have_value("10")


def test_a_move_is_told_to_who_cannot_see_it(fake_visit: Visit) -> None:
    fake_visit.page.locator("#move").focus()
    fake_visit.page.keyboard.press("Enter")
    told = fake_visit.page.get_by_role("status").filter(has_text="Moved.")
    expect(told).to_contain_text("Your world now runs")
    assert focused(fake_visit.page) == "move"


@pytest.mark.parametrize("width", [360, 1280])
def test_text_at_twice_its_size_still_fits(browser: Browser, fake_server: str, width: int) -> None:
    with visiting(browser, fake_server, viewport={"width": width, "height": 900}) as visit:
        visit.page.evaluate("() => (document.documentElement.style.fontSize = '200%')")
        visit.move()
        assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: Browser, fake_server: str, scheme: str) -> None:
    with visiting(browser, fake_server, color_scheme=scheme) as visit:
        visit.move()
        assert visit.page.evaluate(FAINT_TEXT) == []


# The texts whose contrast with the nearest painted ground is below 4.5. Disabled controls are exempt.
FAINT_TEXT = """() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const linear = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            if (colour[3] > 200) return colour;
        }
        return [255, 255, 255, 255];
    };
    const faint = [];
    for (const element of document.body.querySelectorAll("*")) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !element.checkVisibility() || element.closest("[aria-disabled=true]")) continue;
        const [one, other] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        if (contrast < 4.5) faint.push(`${element.textContent.trim()}: ${contrast.toFixed(2)}`);
    }
    return faint;
}"""
