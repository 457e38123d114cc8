"""A small WebDriver client: enough of the protocol to drive Chromium through chromedriver.

Only the standard library is used. Every call has a timeout, and the driver and its browser are
stopped when the `Browser` is closed, even after an error.
"""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A headless Chromium with an empty profile."""

    def __init__(self, width=1280, height=860, dark=False):
        driver = shutil.which("chromedriver")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if not driver or not chromium:
            raise RuntimeError("chromium and chromedriver are needed: apt-get install chromium chromium-driver")
        self.profile = tempfile.mkdtemp(prefix="consistory-browser-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            self._wait_until_up()
            arguments = [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", f"--user-data-dir={self.profile}", f"--window-size={width},{height}",
            ]
            if dark:
                arguments.append("--force-dark-mode")
            options = {"binary": chromium, "args": arguments}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _wait_until_up(self):
        for _ in range(100):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            detail = json.load(error)["value"]
            raise RuntimeError(f"{detail['error']}: {detail['message'].splitlines()[0]}") from None

    # The interface for tests.

    def open(self, url):
        self._call("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs JavaScript in the page and returns its result."""
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """Runs JavaScript whose last argument is called with the result."""
        return self._call("POST", self.session + "/execute/async", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return [e[ELEMENT] for e in self._call("POST", self.session + "/elements", {"using": "css selector", "value": selector})]

    def one(self, selector):
        """Waits until an element exists, and returns it."""
        for _ in range(100):
            found = self.find(selector)
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"nothing on the page matches {selector}")

    def text(self, selector):
        return self._call("GET", f"{self.session}/element/{self.one(selector)}/text")

    def click(self, selector):
        self._call("POST", f"{self.session}/element/{self.one(selector)}/click", {})

    def type(self, selector, text):
        self._call("POST", f"{self.session}/element/{self.one(selector)}/value", {"text": text})

    def keys(self, text):
        """Presses keys in the element that has the focus."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def _actions(self, kind, actions):
        source = {"type": kind, "id": kind, "actions": actions}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self._call("POST", self.session + "/actions", {"actions": [source]})

    def middle(self, selector):
        """Returns the middle of the first element, in pixels of the window."""
        return self.run(
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [Math.round(box.left + box.width / 2), Math.round(box.top + box.height / 2)]", selector)

    def point(self, x, y):
        """Moves the mouse."""
        self._actions("pointer", [{"type": "pointerMove", "duration": 30, "x": x, "y": y}])

    def drag(self, x, y, to_x, to_y):
        """Presses the mouse at one place and releases it at another."""
        self._actions("pointer", [
            {"type": "pointerMove", "duration": 0, "x": x, "y": y}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 60, "x": (x + to_x) // 2, "y": (y + to_y) // 2},
            {"type": "pointerMove", "duration": 60, "x": to_x, "y": to_y}, {"type": "pointerUp", "button": 0}])

    def wheel(self, x, y, by):
        """Turns the wheel of the mouse at a place."""
        self._actions("wheel", [{"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": by}])

    def until(self, script, *arguments):
        """Waits until a JavaScript expression is true."""
        for _ in range(200):
            if self.run(f"return {script}", *arguments):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def cdp(self, command, parameters):
        """Sends a command of Chromium's own protocol."""
        return self._call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def errors(self):
        """Returns the warnings and errors of the console since the last call."""
        entries = self._call("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self._call("GET", self.session + "/screenshot")))
