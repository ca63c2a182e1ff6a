"""A headless Chromium, driven over the pipes of its DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

DEADLINE = 60  # seconds, for each answer
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, _PROGRAMS) if path), None)


class Browser:
    """One page. ERRORS collects what the console reports and what the page throws."""

    def __init__(self, program, width=1200, height=800):
        self._directory = tempfile.TemporaryDirectory(prefix="pyinject-browser-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        arguments = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--user-data-dir=" + self._directory.name, "--remote-debugging-pipe",
            "--window-size=%d,%d" % (width, height),
        ]

        # Chromium reads commands from descriptor 3 and writes answers to 4.
        def take_pipes():
            commands, answers = os.dup(to_browser), os.dup(from_browser)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            arguments, preexec_fn=take_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self._input = b""
        self._number = 0
        self._session = None
        self.errors = []
        self.requests = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        shutil.rmtree(self._directory.name, ignore_errors=True)
        self._directory.cleanup()

    def _message(self, deadline):
        while b"\0" not in self._input:
            if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._input += piece
        message, self._input = self._input.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif message.get("method") == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(json.dumps(parameters["args"]))
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + DEADLINE
        while True:
            answer = self._message(deadline)
            if answer.get("id") != self._number:
                self._note(answer)
            elif "error" in answer:
                raise RuntimeError("%s: %s" % (method, answer["error"]))
            else:
                return answer["result"]

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (expression, json.dumps(result["exceptionDetails"])))
        return result["result"].get("value")

    def open(self, file, ready):
        """Opens FILE and waits until the expression READY is true."""
        self.call("Page.navigate", url=Path(file).resolve().as_uri())
        deadline = time.monotonic() + DEADLINE
        while not self.evaluate("document.readyState === 'complete' && (%s)" % ready):
            if time.monotonic() > deadline:
                raise TimeoutError("the page is not ready: %s" % self.errors)
            self.evaluate("new Promise(requestAnimationFrame)")

    def _mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self._mouse("mouseMoved", x, y)

    def click(self, x, y):
        self.drag((x, y), (x, y))

    def drag(self, first, last):
        self._mouse("mouseMoved", *first)
        self._mouse("mousePressed", *first, button="left", clickCount=1)
        self._mouse("mouseMoved", *last, button="left")
        self._mouse("mouseReleased", *last, button="left", clickCount=1)

    def press(self, key):
        text = key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, file):
        Path(file).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
