"""A headless Chromium, and servers for it to look at: the fake one, and the real one with two engines.

Chromium is found by ``WORLDMOVE_CHROMIUM`` or on the path. Where there is none these tests are skipped, except
under ``CI``: there a missing browser is a failure. ``WORLDMOVE_PAGE_ON=fake,tiles`` runs the tests of the page on both.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser import fake_server as fake
from tests.browser.visit import Visit, visiting
from tests.forks import FORKS
from tests.own_path import ROOT, with_own_path
from worldmove.cli.main import main

START_WITHIN_S = 90.0
SERVE = ("serve", "--no-browser", "--workers", "2")
ISLAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()", *SERVE)
TILES = (*SERVE, "--engine", "python:tests.browser.tile_engine:build")
POPUPS = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
"""What Chromium renders of itself behind every window, seen or not: a second of a core for each visit."""
NOT_THE_PAGE = (
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    "ThirdPartyStoragePartitioning",
)
"""What Playwright turns off: a list of one's own takes the place of its list."""
OPTIONS = ("--no-sandbox", f"--disable-features={','.join((*NOT_THE_PAGE, *POPUPS))}")


def chromium() -> str:
    """The browser's path; skips or fails where there is none."""
    path = os.environ.get("WORLDMOVE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        return path
    why = "no Chromium: install Debian's `chromium`, or name one in WORLDMOVE_CHROMIUM"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def fake_server(browser: Browser) -> Iterator[str]:
    with forked(fake.main) as url:
        yield url


@pytest.fixture(scope="session")
def tiles_server(browser: Browser) -> Iterator[str]:
    with forked(main, *TILES) as url:
        yield url


@pytest.fixture(scope="session")
def island_server(browser: Browser) -> Iterator[str]:
    with serving(ISLAND) as url:
        yield url


@pytest.fixture(params=os.environ.get("WORLDMOVE_PAGE_ON", "tiles").split(","))
def visit(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Visit]:
    """A page that plays a world of its own; at the end it must not have complained or asked a stranger."""
    with visiting(browser, request.getfixturevalue(f"{request.param}_server")) as visit:
        yield visit


@pytest.fixture
def fake_visit(browser: Browser, fake_server: str) -> Iterator[Visit]:
    """The same on the fake server, which can be told to break."""
    with visiting(browser, fake_server) as visit:
        yield visit


@contextmanager
def serving(command: tuple[str, ...]) -> Iterator[str]:
    """Run a server in a process of its own, on a free port, until the tests are done."""
    port = free_port()
    process = subprocess.Popen([*command, "--port", str(port)], cwd=ROOT, env=with_own_path())
    try:
        yield answering_at(port, process.poll)
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextmanager
def forked(program: Callable[[Sequence[str]], None], *arguments: str) -> Iterator[str]:
    """The same, in a process that is forked: its imports, and its workers', would cost more than all that it shows."""
    port = free_port()
    process = FORKS.Process(target=program, args=((*arguments, "--port", str(port)),))
    process.start()
    try:
        yield answering_at(port, lambda: process.exitcode)
    finally:
        process.terminate()
        process.join(timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answering_at(port: int, status: Callable[[], int | None]) -> str:
    """Return the URL of a server once it answers there. ``status``: with which it has ended, if it has."""
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        assert status() is None, f"the server ended with {status()}"
        try:
            with urllib.request.urlopen(f"{url}/api/workers", timeout=2):
                return url
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"no answer at {url} within {START_WITHIN_S:.0f} s")
