"""Debian's Chromium without a window: what it logs and requests is kept; no network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement

CHROMIUM, DRIVER = "chromium", "chromedriver"
GRAVE = ("serious", "critical")


def why_not() -> str:
    """Why there can be no browser here; "" where there can."""
    missing = [name for name in (CHROMIUM, DRIVER) if not shutil.which(name)]
    return f"needs {' and '.join(missing)}: README.md names the packages" if missing else ""


class Browser:
    """One browser with one page at a time."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, fragment: str = "") -> None:
        """Show a page anew, with what an earlier one stored forgotten."""
        self.driver.get("about:blank")
        self.requests(), self.log()
        self.driver.get(f"{page.as_uri()}{fragment}")

    def run(self, script: str, *values: Any) -> Any:
        """What a script returns that is run within the page."""
        return self.driver.execute_script(script, *values)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The element that is there once."""
        (found,) = self.all(selector)
        return found

    def click(self, selector: str) -> None:
        """Click what is there first."""
        self.press(self.all(selector)[0])

    def press(self, element: WebElement) -> None:
        """Click an element in the middle of the window: at its top it may lie below the bar."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def size(self, width: int, height: int = 900) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, scheme: str = "light", medium: str = "") -> None:
        """The system's colour scheme, and `print` for paper."""
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", media=medium, features=wanted)

    def devtools(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def log(self) -> list[str]:
        """What the console said since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were requested since this was last asked, but for what was refused."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        asked = {
            each["params"]["requestId"]: each["params"]["request"]["url"]
            for each in messages
            if each["method"] == "Network.requestWillBeSent"
        }
        for each in messages:
            if each["method"] == "Network.loadingFailed" and each["params"].get("blockedReason"):
                asked.pop(each["params"]["requestId"], None)
        return list(asked.values())

    def faults(self) -> list[str]:
        """What axe-core finds wrong of how a page can be read and used, serious faults alone."""
        self.run((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
        )
        return [
            f"{each['id']}: {[node['target'] for node in each['nodes'][:3]]}"
            for each in found["violations"]
            if each["impact"] in GRAVE
        ]


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which(CHROMIUM))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which(DRIVER))))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
