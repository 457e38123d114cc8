#!/usr/bin/env python3
"""Takes pictures of reports of every kind and of the local page, in the light and the dark theme.

    dev/browser/screenshots.py BINARY FOLDER

Check them after a change to the drawing of pages. With `--docs`, the pictures of the documentation, in the light
theme, are written to docs/figures.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from webdriver import Browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NEXT = "document.getElementById('next')?.click();"

# Name, arguments of the tool (`{}` stands for a generated history), and the actions before the picture.
REPORTS = [
    ("batch", ["check", "corpus/histories", "--model", "sc,tso"], ""),
    ("proof", ["check", "{long}", "--model", "cc"], NEXT * 3),
    ("proof-core", ["check", "{long}", "--model", "cc"], "document.querySelector('button.core').click();" + NEXT * 2),
    ("cases", ["check", "corpus/histories/repeated-values-violation.hist", "--model", "cc,sc"], NEXT * 2),
    ("history-consistent", ["check", "corpus/histories/message-passing-kept.hist", "--model", "sc"], ""),
    ("history-time", ["check", "{timed}", "--model", "cc"],
     "[...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'time view').click()"),
    ("calls", ["check", "{calls}", "--object", "queue", "--model", "linearizability"], NEXT * 2),
    ("calls-core", ["check", "{calls}", "--object", "queue", "--model", "linearizability"],
     "document.querySelector('button.core').click(); setTimeout(() => {" + NEXT * 3 + "}, 100)"),
    ("transactions", ["check", "corpus/transactions/long-fork.hist", "--model", "pc,si,ser"], NEXT * 2),
    ("transactions-long", ["check", "{transactions}", "--model", "ser"], NEXT),
    ("litmus", ["litmus", "outcomes", "corpus/litmus/x86/SB.litmus", "--model", "sc,tso"], ""),
    ("litmus-iriw", ["litmus", "outcomes", "corpus/litmus/x86/IRIW.litmus", "--model", "sc,pso"], ""),
    ("litmus-aarch64", ["litmus", "outcomes", "corpus/executions/aarch64/MP.litmus", "--model", "sc,aarch64"], ""),
    ("litmus-batch", ["litmus", "outcomes", "corpus/litmus/x86", "--model", "sc,tso"], ""),
    ("contrast", ["contrast", "tso", "sc"], NEXT * 2),
    ("contrast-levels", ["contrast", "si", "ser"], NEXT),
    ("run", ["verify", "crates/serve/assets/examples/msi-missing.m"], NEXT * 3),
    ("test", ["test", "sqlite", "--time", "2s", "--output", "{folder}/sqlite"], ""),
    ("test-violation", ["test", "--command", "docs/examples/broken_store.py", "--system", "docs/examples/broken_store.py",
                        "--nodes", "n1,n2", "--time", "4s", "--reproduce", "1", "--output", "{folder}/broken"], NEXT),
]
# The local page: a kind, or an example by a part of its title, and the text that replaces its text.
SERVED = [
    ("serve-history", "history", None),
    ("serve-errors", "history", "t0: w(x,1)\nt1: r(x,1) oops(((\n"),
    ("serve-litmus", "litmus", None),
    ("serve-protocol", "protocol", None),
    ("serve-model", "model", None),
    ("serve-model-error", "model", '"Mine"\nacyclic po | nonsense as Bad\n'),
    ("serve-atlas", "atlas", None),
]
# Pictures of the documentation, and their names above.
DOCUMENTED = {
    "report-proof": "proof", "report-calls": "calls-core", "report-litmus": "litmus", "report-run": "run",
    "report-batch": "batch", "report-test": "test-violation", "report-lattice": "lattice", "serve-model": "serve-model",
}
TIMED = "t0: w(x,1)@1..4 w(y,1)@5..9\nt1: r(y,1)@12..15 r(x,0)@16..20\nt2: w(z,3)@2..14 r(z,3)@15..18\n"
CALLS = """t0: enqueue(1) => null @10..11  enqueue(2) => null @12..13  enqueue(5) => null @24..30
t1: dequeue() => 2 @20..21  dequeue() => 1 @22..23
t2: enqueue(7) => null @9..15  enqueue(8) => null @16..17  enqueue(9) => null @18..19
"""


def main(binary, folder, is_documented):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        made = {"folder": work}
        for name, text in {"timed": TIMED, "calls": CALLS}.items():
            made[name] = f"{name}.hist"
            (pathlib.Path(work) / made[name]).write_text(text)
        for name, options in {
            "long": ["-m", "broken", "-s", "5", "-n", "100000", "-v", "40", "--seed", "3"],
            "transactions": ["--transactions", "--anomaly", "long-fork", "-s", "6", "-n", "400", "-v", "9", "--seed", "3"],
        }.items():
            made[name] = f"{name}.hist"
            subprocess.run([binary, "generate", *options, "-o", made[name]], cwd=work, check=True)
        pages = []
        for name, arguments, script in REPORTS:
            page = pathlib.Path(work) / f"{name}.html"
            words = [word.format(**made) for word in arguments]
            is_made = any(word in arguments for word in ("{long}", "{timed}", "{calls}", "{transactions}"))
            ran = subprocess.run(
                [binary, *words, "--report", page], cwd=work if is_made else ROOT, capture_output=True, text=True)
            if ran.returncode > 1:
                print(f"{name}: {ran.stderr.strip()}", file=sys.stderr)
                continue
            pages.append((name, page, script))
        lattice = pathlib.Path(work) / "lattice.html"
        lattice.write_bytes(subprocess.run([binary, "models", "lattice", "--format", "html"], check=True, capture_output=True).stdout)
        pages.append(("lattice", lattice, "document.querySelectorAll('.map .edge.choice')[5].dispatchEvent(new MouseEvent('click', { bubbles: true })); requestAnimationFrame(() => (document.querySelector('.right').scrollTop = 0))"))
        for theme in ("light", "dark"):
            with Browser(1280, 800) as browser:
                browser.cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
                # The window of a headless browser is smaller than requested.
                browser.cdp("Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 820, "deviceScaleFactor": 1, "mobile": False})
                take(browser, binary, folder, theme, pages)
    if is_documented:
        for figure, name in DOCUMENTED.items():
            shutil.copy(folder / f"{name}-light.png", ROOT / f"docs/figures/{figure}.png")


def take(browser, binary, folder, theme, pages):
    for name, page, script in pages:
        browser.open(page.as_uri())
        browser.one("main h1")
        browser.run(f"{script};")
        browser.run_async("setTimeout(arguments[0], 250)")
        browser.screenshot(folder / f"{name}-{theme}.png")
    server = subprocess.Popen([binary, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        for name, kind, typed in SERVED:
            browser.open("about:blank")
            browser.open(address)
            browser.until("typeof catalogue !== 'undefined' && catalogue && document.querySelector('#results tbody tr')")
            browser.run("if (arguments[0] !== 'history') { window.before = asked; changeKind(arguments[0]); } else window.before = asked - 1", kind)
            browser.until("asked > before && !byId('about').textContent.includes('…')")
            if typed:
                browser.run("window.before = asked; setText(arguments[0])", typed)
                browser.until("asked > before && !byId('about').textContent.includes('…')")
            browser.run_async("setTimeout(arguments[0], 250)")
            browser.screenshot(folder / f"{name}-{theme}.png")
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--docs"]
    main(str(pathlib.Path(words[0]).resolve()), pathlib.Path(words[1]), "--docs" in sys.argv)
