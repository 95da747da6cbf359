"""A browser for tests of pages: headless Chromium by Playwright.

The fixtures are there in all tests, through conftest.py: `visit` opens pages, and in the end it
checks that nothing went wrong in them. Without Playwright or Chromium the tests that ask for them
are skipped, or fail where the environment has ANYORDER_BROWSER=require.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def _missing(what: str) -> None:
    if os.environ.get("ANYORDER_BROWSER") == "require":
        pytest.fail(f"ANYORDER_BROWSER=require, and there is no {what}")
    pytest.skip(f"needs {what}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; of a module, since while it runs this thread has a loop of asyncio."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        _missing("Chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield found
        found.close()


class Visits:
    """Open pages: `visit(page_or_address)`.

    Attributes
    ----------
    wrong
        What went wrong in them: errors and warnings of the console, exceptions, requests to
        anywhere but the page's own place. A test that expects some clears it.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.wrong: list[str] = []

    def __call__(
        self, page: Path | str, *, width: int = 1280, height: int = 900, scheme: str = "light",
        **options: Any,
    ) -> Page:  # fmt: skip
        """Open a file or an address; return Playwright's page once it has been loaded.

        Parameters
        ----------
        width, height
            Of the window.
        scheme
            "light" or "dark", what the reader prefers.
        options
            Others of Playwright's `new_context`.
        """
        address = page.as_uri() if isinstance(page, Path) else page
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        self._contexts.append(context)
        opened: Page = context.new_page()
        own = urlsplit(address)[:2]

        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.wrong.append(f"{message.type}: {message.text}")

        def check(request: Request) -> None:
            if urlsplit(request.url)[:2] != own and not request.url.startswith(("data:", "blob:")):
                self.wrong.append(f"asked for {request.url}")

        opened.on("console", note)
        opened.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        opened.on("request", check)
        opened.goto(address)
        return opened

    def close(self) -> None:
        """Close the pages."""
        while self._contexts:
            self._contexts.pop().close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visits]:
    """Open pages in the browser; nothing may have gone wrong in them in the end."""
    visits = Visits(chromium)
    yield visits
    visits.close()
    assert visits.wrong == [], "\n".join(visits.wrong)
