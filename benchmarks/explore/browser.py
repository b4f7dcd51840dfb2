"""A real Chromium without a window, driven by Selenium."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")

_ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip


class Browser:
    """Browser with one page; `width` and `height` of the window are CSS pixels."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for argument in (*_ARGUMENTS, f"--window-size={width},{height}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver: Any = Chrome(options, Service(str(DRIVER)))

    def visit(self, address: str) -> None:
        """Open an address."""
        self._driver.get(address)

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page and return what it returns."""
        return self._driver.execute_script(script, *arguments)

    def console(self) -> list[dict[str, Any]]:
        """Return the console output since the last call."""
        found: list[dict[str, Any]] = self._driver.get_log("browser")
        return found

    def devtools(self, command: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._driver.execute_cdp_cmd(command, parameters)

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the emulated screen."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1.0, mobile=width < 600)  # fmt: skip

    def dark(self, wanted: bool = True) -> None:
        """Pretend that the reader prefers a dark page."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def print(self, path: Path) -> None:
        """Write the page as PDF."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69}
        shot = self.devtools("Page.printToPDF", printBackground=False, **size)
        path.write_bytes(base64.b64decode(shot["data"]))

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.quit()
