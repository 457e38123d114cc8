#!/usr/bin/env python3
"""Opens reports and the local page in a real Chromium.

    dev/browser/test_pages.py BINARY [--screenshots FOLDER] [-k PATTERN]

Reports of every kind are opened, filtered, stepped through and zoomed; on the local page models are edited
and malformed files dropped; all inputs have hostile names. After each test the console must have no errors,
and axe-core must find nothing serious on the page.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from base import Shared  # noqa: E402
from test_pictures import Pictures  # noqa: E402, F401
from test_reports import Reports  # noqa: E402, F401
from test_serve import LocalPage  # noqa: E402, F401

if __name__ == "__main__":
    Shared.binary = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        Shared.screenshots = pathlib.Path(sys.argv[at + 1])
        Shared.screenshots.mkdir(parents=True, exist_ok=True)
        del sys.argv[at:at + 2]
    unittest.main()
