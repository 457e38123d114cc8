"""Shared by the tests of pages: one browser, one server, and the checks after each test."""

import atexit
import pathlib
import subprocess
import tempfile
import unittest

import axe
from webdriver import Browser

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EVIL = "<img src=x onerror=document.title=1>"
HOSTILE = f'"<script>document.title=1</script>": w("{EVIL}",1)\nt1: r("{EVIL}",2)\n'
HOSTILE_LITMUS = 'X86 SB\n"<script>document.title=1</script>"\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n'


class Shared:
    """The programs that are started once for all tests."""

    binary = None
    screenshots = None

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.axe = axe.source()
        self.server = subprocess.Popen([Shared.binary, "serve"], stdout=subprocess.PIPE, text=True)
        self.address = self.server.stdout.readline().strip()
        self.browser = Browser(1400, 900)

    def close(self):
        self.browser.close()
        self.server.terminate()
        self.server.wait(10)
        self.server.stdout.close()
        self.folder.cleanup()


class PageTest(unittest.TestCase):
    shared = None

    @classmethod
    def setUpClass(cls):
        if PageTest.shared is None:
            PageTest.shared = Shared()
            atexit.register(PageTest.shared.close)
        cls.folder, cls.axe = PageTest.shared.folder, PageTest.shared.axe
        cls.browser, cls.address = PageTest.shared.browser, PageTest.shared.address

    def tearDown(self):
        name = self.id().split(".")[-1].removeprefix("test_")
        if Shared.screenshots:
            self.browser.screenshot(pathlib.Path(Shared.screenshots) / f"{name}.png")
        self.assertEqual(self.browser.errors(), [])
        self.assertEqual(self.serious(), [])

    def serious(self):
        """Returns the serious findings of axe-core on the open page."""
        return [f for f in axe.findings(self.browser, self.axe) if f[0] in ("serious", "critical")]

    def dark(self, is_dark=True):
        """Emulates the dark theme of a system."""
        features = [{"name": "prefers-color-scheme", "value": "dark"}] if is_dark else []
        self.browser.cdp("Emulation.setEmulatedMedia", {"features": features})

    def tool(self, *arguments, codes=(0, 1)):
        """Runs the binary from the root of the repository."""
        ran = subprocess.run([Shared.binary, *arguments], cwd=ROOT, capture_output=True, text=True)
        self.assertIn(ran.returncode, codes, ran.stderr)
        return ran

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def written(self, name, text):
        """Writes a file and returns its name."""
        self.path(name).write_text(text)
        return str(self.path(name))

    def report(self, name, *arguments):
        """Writes a report and opens it."""
        path = pathlib.Path(self.folder.name) / f"{name}.html"
        ran = subprocess.run([Shared.binary, *arguments, "--report", path], cwd=ROOT, capture_output=True, text=True)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        self.browser.open(path.as_uri())
        self.browser.one("main h1, main .error")
        # A picture is laid out only after the page has its width.
        self.browser.until("[...document.querySelectorAll('.stage')].every((stage) => stage.style.height)")
        return path

    def serve(self):
        """Opens the local page anew, without its previous contents."""
        self.browser.open("about:blank")
        self.browser.open(self.address)
        self.browser.until("typeof catalogue !== 'undefined' && catalogue && document.querySelector('#results tbody tr')")

    def write(self, text):
        """Enters a text into the editor, as typing does, and waits for the answer."""
        self.browser.run(
            "window.before = asked; text.value = arguments[0]; text.dispatchEvent(new Event('input'))", text)
        self.browser.until("asked > before && !byId('about').textContent.includes('…')")

    def count(self, selector):
        return self.browser.run("return document.querySelectorAll(arguments[0]).length", selector)

    def generated(self, name, *arguments):
        """Generates histories and returns their file."""
        path = pathlib.Path(self.folder.name) / name
        ran = subprocess.run([Shared.binary, "generate", *arguments], capture_output=True, check=True)
        path.write_bytes(ran.stdout)
        return str(path)
