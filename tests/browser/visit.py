"""One visitor: a page of its own, and what a test may ask and do there."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, expect

PATIENCE_MS = 12_000


@dataclass(slots=True, kw_only=True)
class Visit:
    """A page and the server it talks to."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    """What the console and the network said that they should not have."""
    may_be_refused: bool = False
    """Whether the server may answer 409, of which the browser's console tells."""

    @property
    def session(self) -> str:
        return self.page.url.rsplit("/", 1)[1]

    @property
    def frame(self) -> int:
        """The number of the frame that stands on the screen."""
        return int(self.page.locator("#stage").get_attribute("data-frame") or -1)

    @property
    def pose(self) -> tuple[int, int]:
        y, x = (self.page.locator("#stage").get_attribute("data-pose") or "0,0").split(",")
        return int(y), int(x)

    @property
    def owner(self) -> str:
        return self.page.locator(".worker.owner").get_attribute("data-worker") or ""

    @property
    def frames(self) -> dict[str, int]:
        """The page's own count: shown, missing, repeated."""
        return {word: int(n.replace(",", "")) for n, word in re.findall(r"([\d,]+) (\w+)", self.text("#frames"))}

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def sees(self, selector: str, pattern: str) -> None:
        """Wait until an element has words that match."""
        expect(self.page.locator(selector)).to_have_text(re.compile(pattern), timeout=PATIENCE_MS)

    def until(self, expression: str, argument: object = None) -> None:
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(expression, arg=argument, timeout=PATIENCE_MS)

    def until_frame(self, number: int) -> None:
        self.until("n => Number(document.getElementById('stage').dataset.frame) >= n", number)

    def tap(self, code: str, times: int = 1) -> None:
        """Press and release a key at once, so that both changes travel together."""
        strike = """([code, times]) => {
            for (let i = 0; i < times; i++)
                for (const type of ["keydown", "keyup"])
                    document.body.dispatchEvent(new KeyboardEvent(type, { code, bubbles: true, cancelable: true }));
        }"""
        self.page.evaluate(strike, [code, times])

    def walk(self, code: str, times: int) -> None:
        """Walk some tiles, and wait until the picture has got there."""
        dy, dx = {"ArrowRight": (0, 1), "ArrowLeft": (0, -1), "ArrowDown": (1, 0), "ArrowUp": (-1, 0)}[code]
        y, x = self.pose
        self.tap(code, times)
        there = f"{y + dy * times},{x + dx * times}"
        self.until("pose => document.getElementById('stage').dataset.pose === pose", there)

    def move(self) -> None:
        """Press Move and wait for its end."""
        self.page.locator("#move").click()
        self.sees("#move-sentence", r"^Moved\.")

    def move_until_it_moves(self, tries: int = 5) -> None:
        """Press Move again where the machine was too busy to admit it in time: a refusal changes nothing."""
        self.may_be_refused = True
        for _ in range(tries - 1):
            self.page.locator("#move").click()
            self.sees("#move-sentence", r"^(Moved|Not moved)")
            if self.text("#move-sentence").startswith("Moved"):
                return
        self.move()

    def fault(self, name: str) -> None:
        """Have the fake server do something wrong."""
        call("POST", f"{self.url}/fake/{self.session}/{name}")


@contextmanager
def visiting(browser: Browser, url: str, **context: Any) -> Iterator[Visit]:
    """Open the page, wait for a picture; close its session at the end."""
    opened = browser.new_context(**context)
    page = opened.new_page()
    visit = Visit(page=page, url=url)
    complain = visit.complaints.append
    page.on("console", lambda message: complain(f"console: {message.text}"))
    page.on("pageerror", lambda error: complain(f"error: {error}"))
    page.on("request", lambda request: None if is_own(request.url, url) else complain(f"asked {request.url}"))
    page.goto(url)
    visit.until_frame(0)
    yield visit
    session = visit.session
    opened.close()
    call("DELETE", f"{url}/api/sessions/{session}")
    told = [complaint for complaint in visit.complaints if not (visit.may_be_refused and "409" in complaint)]
    assert told == [], told


def is_own(asked: str, url: str) -> bool:
    return asked.startswith((url, f"blob:{url}", url.replace("http", "ws", 1)))


def call(method: str, url: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
        body = answer.read()
        return json.loads(body) if body else None
