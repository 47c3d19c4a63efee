# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real browser and the pages to open in it.

The browser is the one of the system (Debian: chromium); RDMA_K8S_CHROMIUM names another. With RDMA_K8S_SCREENSHOTS=DIR
the tests leave their pictures there, the one for the documentation among them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, sync_playwright

from ansible_collections.rdma.k8s.plugins.module_utils import judging, records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import html
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION
from ansible_collections.rdma.k8s.tests.bench.make_result import make

FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


class Opened:
    """A page, and what it did that no report may do: messages on the console, errors, requests, dialogs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("dialog", lambda dialog: (self.faults.append("dialog: " + dialog.message), dialog.dismiss()))

    def _console(self, message: ConsoleMessage) -> None:
        self.faults.append("console: " + message.text)

    def _error(self, error: Error) -> None:
        self.faults.append("error: " + str(error))

    def _request(self, request: Request) -> None:
        if not request.is_navigation_request() and not request.url.startswith("data:"):
            self.faults.append("request: " + request.url)

    def violations(self) -> list[str]:
        """What axe-core finds wrong with the page, once nothing on it moves: half faded in, any text is too pale."""
        self.page.evaluate(AXE)
        self.page.evaluate("() => Promise.all(document.getAnimations().map((each) => each.finished))")
        found = self.page.evaluate(
            "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
        )
        return ["%s: %s" % (rule["id"], [node["html"][:120] for node in rule["nodes"][:3]]) for rule in found]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("RDMA_K8S_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "no Chromium here: install Debian's package chromium, or name one in RDMA_K8S_CHROMIUM"
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=flags)
        yield started
        started.close()


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ResultDocument], str]:
    """A function that writes the report of a document and returns its file address."""
    folder = tmp_path_factory.mktemp("reports")

    def written(document: ResultDocument) -> str:
        path = folder / ("%d.html" % len(list(folder.iterdir())))
        path.write_text("".join(html.chunks(document)), encoding="utf-8")
        return path.as_uri()

    return written


@pytest.fixture(scope="session")
def fleet(write: Callable[[ResultDocument], str]) -> str:
    """24 nodes with 60 checks."""
    return write(make(24, 60))


@pytest.fixture(scope="session")
def recorded(write: Callable[[ResultDocument], str]) -> str:
    """The recorded fleet of the examples, judged."""
    examples = Path(__file__).resolve().parents[2] / "examples"
    policy = judging.policy_from(str(examples / "policy.yml"), {})
    return write(judge(records.load(str(examples / "fleet")), policy, "2026-03-02T09:30:00Z", VERSION))


@pytest.fixture(scope="session")
def large(write: Callable[[ResultDocument], str]) -> str:
    """1,000 nodes with 150 checks."""
    return write(make(1000, 150))


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """A function that opens an address in a context of its own; the test fails when the page did what it must not."""
    contexts: list[BrowserContext] = []
    pages: list[Opened] = []

    def opened(address: str, **options: object) -> Opened:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(15000)
        contexts.append(context)
        pages.append(Opened(context.new_page()))
        pages[-1].page.goto(address)
        if options.get("java_script_enabled", True):
            pages[-1].page.wait_for_selector("html[data-ready]", state="attached")
        return pages[-1]

    yield opened
    for context in contexts:
        context.close()
    assert [fault for page in pages for fault in page.faults] == []


@pytest.fixture
def picture() -> Callable[[Page, str], None]:
    """A function that keeps a picture of the page, when pictures are wanted."""
    folder = os.environ.get("RDMA_K8S_SCREENSHOTS", "")

    def taken(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / (name + ".png")))

    return taken
