#!/usr/bin/env python3
"""Opens reports in a real Chromium: overview, filter, a case, a proof step by step, hostile names.

    dev/browser/test_pages.py BINARY
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from webdriver import Browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = None
HOSTILE = '"<script>document.title=1</script>": w("<img src=x onerror=alert(1)>",1)\nt1: r("<img src=x onerror=alert(1)>",2)\n'


def report(folder, name, *arguments):
    """Writes a report and returns its address."""
    path = pathlib.Path(folder) / f"{name}.html"
    ran = subprocess.run([BINARY, "check", *arguments, "--report", path], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    return path.as_uri()


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def test_a_batch_is_filtered_and_sorted(self):
        b = self.browser
        b.open(report(self.folder.name, "batch", "corpus/histories", "--model", "sc"))
        b.one("tbody tr.link")
        everything = b.run("return document.querySelectorAll('tbody tr.link').length")
        b.type("#filter", "store-buffering")
        b.until("document.querySelectorAll('tbody tr.link').length < arguments[0]", everything)
        self.assertEqual(b.run("return document.querySelectorAll('tbody tr.link').length"), 2)
        b.click("tbody tr.link a")
        self.assertIn("store-buffering", b.text("h1"))
        b.keys("\ue00c")
        b.one("#filter")

    def test_a_proof_is_walked_through(self):
        b = self.browser
        b.open(report(self.folder.name, "proof", "corpus/histories/message-passing.hist", "--model", "cc"))
        b.one("svg .node")
        steps = b.run("return document.querySelectorAll('ol.steps li').length")
        self.assertGreaterEqual(steps, 3)
        for _ in range(steps):
            b.click("#next")
            self.assertGreater(b.run("return document.querySelectorAll('svg .lit').length"), 0)
        b.keys("p")
        self.assertEqual(b.run("return shown.step"), steps - 1)
        before = b.run("return document.querySelector('.stage svg').getAttribute('viewBox')")
        b.keys("+")
        self.assertNotEqual(before, b.run("return document.querySelector('.stage svg').getAttribute('viewBox')"))

    def test_transactions_and_calls_are_drawn(self):
        b = self.browser
        b.open(report(self.folder.name, "levels", "corpus/transactions/long-fork.hist", "--model", "pc"))
        b.one("svg .node.transaction, svg .node.operation")
        b.open(report(self.folder.name, "calls", "corpus/objects/queue-overtaken.hist", "--model", "linearizability", "--object", "queue"))
        b.one("svg .node.wrong")

    def test_hostile_names_do_nothing(self):
        b = self.browser
        path = pathlib.Path(self.folder.name) / "hostile.hist"
        path.write_text(HOSTILE)
        b.open(report(self.folder.name, "hostile", str(path), "--model", "cc"))
        b.one("svg .node")
        self.assertEqual(b.run("return document.querySelectorAll('main img, svg script').length"), 0)
        self.assertIn("hostile", b.run("return document.title"))


if __name__ == "__main__":
    BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
