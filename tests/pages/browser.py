"""A Chromium that is spoken to over two pipes, by its own protocol: no driver is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pages.axe import CHECK

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    "--remote-debugging-pipe",
)
PATIENCE = 120.0  # seconds, on a machine with much else to do


def executable() -> str | None:
    """Where Chromium is, if it is at hand."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a Chromium, and all that it has said and asked for."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._number = write, read, b"", 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Ask Chromium for something, and wait for it; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {} if self._session is None else {"sessionId": self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, ends - time.monotonic()))
            assert ready, "Chromium does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def look(self, *, width: int, height: int, dark: bool) -> None:
        """Choose the window and the scheme of colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> float:
        """Load a page and wait until it is there; gives the seconds that took."""
        self.events.clear()
        began = time.monotonic()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        return time.monotonic() - began

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true in the page."""
        ends = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < ends, f"{condition} never came"
            time.sleep(0.1)

    def _holds(self, condition: str) -> bool:
        found = self.call("Runtime.evaluate", expression=condition, returnByValue=True)
        return found["result"].get("value") is True

    def violations(self, axe: str) -> list[str]:
        """What axe-core finds wrong with the page, as rules and places."""
        self.call("Runtime.evaluate", expression=axe)
        found: list[str] = self.run(CHECK)
        return found

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and what the page's policy has stopped."""
        told = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                told.append(json.dumps(parameters["exceptionDetails"]))
            if method == "Log.entryAdded" and parameters["entry"]["level"] in ("warning", "error"):
                told.append(parameters["entry"]["text"])
            if method == "Runtime.consoleAPICalled" and parameters["type"] in ("warning", "error"):
                told.append(json.dumps(parameters["args"]))
        return told

    @property
    def requests(self) -> list[str]:
        """All addresses that were asked for, those within the page apart."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        found = [event["params"]["request"]["url"] for event in sent]
        return [address for address in found if not address.startswith("data:")]

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """A screenshot."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium of its own, with a fresh profile; it is gone afterwards."""
    found = executable()
    assert found is not None
    (its_read, to_write), (to_read, its_write) = _pipe(), _pipe()

    def connect() -> None:  # it reads from 3 and writes to 4
        os.dup2(its_read, 3)
        os.dup2(its_write, 4)

    with tempfile.TemporaryDirectory(prefix="fastglt-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [found, *FLAGS, f"--user-data-dir={profile}"],
            close_fds=False,
            preexec_fn=connect,  # noqa: PLW1509
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_read)
        os.close(its_write)
        try:
            yield Browser(to_write, to_read)
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(to_write)
            os.close(to_read)


def _pipe() -> tuple[int, int]:
    """Two ends, neither of which is 3 or 4, and which no other process inherits."""
    low = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return read, write
