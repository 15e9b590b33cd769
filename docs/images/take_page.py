"""Take the picture of the page that the README shows: ``python docs/images/take_page.py http://127.0.0.1:8787``.

The server must be running. Walks, plants a flag, moves, comes back to the flag, and takes the whole page.
"""

import json
import os
import shutil
import sys
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURE = Path(__file__).with_name("page.png")
SEED = 12
FLAG, TURN, END = (2, 6), (3, 13), (3, 4)
"""Places, (y, x): where the flag is planted, where the way turns back, where the picture is taken."""
BETWEEN_TAPS_MS, SETTLE_MS = 150, 800


def open_session(url: str, seed: int) -> str:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/sessions", json.dumps({"seed": seed}).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        session: str = json.load(answer)["session"]
        return session


def pose_of(page: Page) -> tuple[int, int]:
    y, x = (page.get_attribute("#stage", "data-pose") or "0,0").split(",")
    return int(y), int(x)


def walk_to(page: Page, place: tuple[int, int]) -> None:
    """Tap towards a place until the picture is there. A busy machine may show the last taps late: look again."""
    while (here := pose_of(page)) != place:
        down, right = place[0] - here[0], place[1] - here[1]
        taps = abs(right) * ["ArrowRight" if right > 0 else "ArrowLeft"]
        for key in taps + abs(down) * ["ArrowDown" if down > 0 else "ArrowUp"]:
            page.keyboard.press(key)
            page.wait_for_timeout(BETWEEN_TAPS_MS)
        page.wait_for_timeout(SETTLE_MS)


def visit(page: Page, url: str) -> None:
    page.goto(f"{url}/play/{open_session(url, SEED)}")
    page.wait_for_selector("#stage[data-frame]", timeout=60_000)
    walk_to(page, FLAG)
    page.keyboard.press("Space")
    page.wait_for_selector("[data-step=flag].done")
    walk_to(page, TURN)
    while page.locator("#move-sentence[data-outcome=committed]").count() == 0:
        page.locator("#move").click()  # a busy machine may refuse a first try
        page.wait_for_selector("#move[aria-disabled=false]")
        page.wait_for_timeout(1000)
    walk_to(page, END)


def main() -> None:
    with sync_playwright() as playwright:
        chromium = os.environ.get("WORLDMOVE_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        visit(page, sys.argv[1])
        page.evaluate("() => document.activeElement.blur()")
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
