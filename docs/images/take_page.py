"""Take the picture of the page that the README shows: ``python docs/images/take_page.py http://127.0.0.1:8787``.

The server must be running. Walks, plants a flag, moves, walks back to it, and takes the whole page.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURE = Path(__file__).with_name("page.png")
THERE = (("ArrowRight", 900), ("ArrowDown", 700))
BACK = (("ArrowRight", 1300), ("ArrowDown", 500), ("ArrowLeft", 800), ("ArrowUp", 250))


def walk(page: Page, way: tuple[tuple[str, int], ...]) -> None:
    for key, held_ms in way:
        page.keyboard.down(key)
        page.wait_for_timeout(held_ms)
        page.keyboard.up(key)
        page.wait_for_timeout(300)


def visit(page: Page, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("#stage[data-frame]", timeout=60_000)
    walk(page, THERE)
    page.keyboard.press("Space")
    page.wait_for_selector("[data-step=flag].done")
    page.locator("#move").click()
    page.wait_for_selector("#move-sentence[data-outcome=committed]", timeout=30_000)
    walk(page, BACK)


def main() -> None:
    with sync_playwright() as playwright:
        chromium = os.environ.get("WORLDMOVE_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, device_scale_factor=1)
        visit(page, sys.argv[1])
        page.evaluate("() => document.activeElement.blur()")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
