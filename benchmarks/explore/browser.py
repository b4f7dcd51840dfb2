"""A real Chromium without a window, driven through WebDriver with the standard library alone."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


class Browser:
    """Browser with one page.

    Parameters
    ----------
    width, height
        Of the window in CSS pixels; phones are narrower than a window can be, see :meth:`resize`.
    """

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            [str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._base = f"http://127.0.0.1:{port}"
        self._session = ""
        try:
            self._wait()
            found = self._call(
                "POST",
                "/session",
                {
                    "capabilities": {
                        "alwaysMatch": {
                            "goog:loggingPrefs": {"browser": "ALL"},
                            "goog:chromeOptions": {
                                "binary": CHROMIUM,
                                "args": [
                                    *_ARGUMENTS,
                                    f"--user-data-dir={self._profile.name}",
                                    f"--window-size={width},{height}",
                                ],
                            },
                        }
                    }
                },
            )
        except BaseException:
            self.close()
            raise
        self._session = f"/session/{found['sessionId']}"

    def _wait(self) -> None:
        for _ in range(200):
            try:
                self._call("GET", "/status")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
            else:
                return
        raise TimeoutError("chromedriver does not answer")

    def _call(self, verb: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data=data, method=verb)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error

    def open(self, path: Path) -> None:
        """Open a file."""
        self.visit(path.resolve().as_uri())

    def visit(self, address: str) -> None:
        """Open an address."""
        self._call("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: object) -> Any:
        """Run the body of a function in the page and return what it returns."""
        return self._call(
            "POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)}
        )

    def console(self) -> list[dict[str, Any]]:
        """Return the console output since the last call."""
        found: list[dict[str, Any]] = self._call(
            "POST", f"{self._session}/se/log", {"type": "browser"}
        )
        return found

    def devtools(self, command: str, **parameters: object) -> Any:
        """Send a command of the DevTools protocol."""
        return self._call(
            "POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters}
        )

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the emulated screen."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1.0,
            mobile=width < 600,
        )

    def dark(self, wanted: bool = True) -> None:
        """Pretend that the reader prefers a dark page."""
        value = "dark" if wanted else "light"
        self.devtools(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": value}],
        )

    def print(self, path: Path) -> None:
        """Write the page as PDF."""
        shot = self.devtools(
            "Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End browser and driver."""
        if self._session:
            with contextlib.suppress(OSError, RuntimeError):
                self._call("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait(timeout=30)
        self._profile.cleanup()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
