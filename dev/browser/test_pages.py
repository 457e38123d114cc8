#!/usr/bin/env python3
"""Opens reports and the local page in a real Chromium.

    dev/browser/test_pages.py BINARY [--screenshots FOLDER]

Reports of every kind are opened, filtered, stepped through and zoomed; on the local page models are
edited and broken files dropped; hostile names are everywhere. After each test the console must be
free of errors, and axe-core must find nothing serious on the page.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import axe  # noqa: E402
from webdriver import Browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = None
SCREENSHOTS = None
EVIL = "<img src=x onerror=document.title=1>"
HOSTILE = f'"<script>document.title=1</script>": w("{EVIL}",1)\nt1: r("{EVIL}",2)\n'
HOSTILE_LITMUS = 'X86 SB\n"<script>document.title=1</script>"\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n'


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.axe = axe.source()
        cls.browser = Browser(1400, 900)
        cls.server = subprocess.Popen([BINARY, "serve"], stdout=subprocess.PIPE, text=True)
        cls.address = cls.server.stdout.readline().strip()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.terminate()
        cls.server.wait(10)
        cls.server.stdout.close()
        cls.folder.cleanup()

    def tearDown(self):
        name = self.id().split(".")[-1].removeprefix("test_")
        if SCREENSHOTS:
            self.browser.screenshot(pathlib.Path(SCREENSHOTS) / f"{name}.png")
        self.assertEqual(self.browser.errors(), [])
        serious = [f for f in axe.findings(self.browser, self.axe) if f[0] in ("serious", "critical")]
        self.assertEqual(serious, [])

    def report(self, name, *arguments):
        """Writes a report and opens it."""
        path = pathlib.Path(self.folder.name) / f"{name}.html"
        ran = subprocess.run([BINARY, *arguments, "--report", path], cwd=ROOT, capture_output=True, text=True)
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        self.browser.open(path.as_uri())

    def serve(self):
        """Opens the local page anew, without what was on it."""
        self.browser.open("about:blank")
        self.browser.open(self.address)
        self.browser.until("typeof catalogue !== 'undefined' && catalogue && document.querySelector('#results tbody tr')")

    def write(self, text):
        """Puts a text into the editor, as typing does, and waits for the answer to it."""
        self.browser.run(
            "window.before = asked; text.value = arguments[0]; text.dispatchEvent(new Event('input'))", text)
        self.browser.until("asked > before && !byId('about').textContent.includes('…')")

    def count(self, selector):
        return self.browser.run("return document.querySelectorAll(arguments[0]).length", selector)

    # Reports.

    def test_a_batch_is_filtered_and_sorted(self):
        b = self.browser
        self.report("batch", "check", "corpus/histories", "--model", "sc")
        b.one("tbody tr.link")
        everything = self.count("tbody tr.link")
        b.type("#filter", "store-buffering")
        b.until("document.querySelectorAll('tbody tr.link').length < arguments[0]", everything)
        self.assertEqual(self.count("tbody tr.link"), 2)
        b.click("tbody tr.link a")
        self.assertIn("store-buffering", b.text("h1"))
        b.keys("\ue00c")
        b.one("#filter")

    def test_a_proof_is_walked_through(self):
        b = self.browser
        self.report("proof", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("svg .node")
        steps = self.count("ol.steps li")
        self.assertGreaterEqual(steps, 3)
        for _ in range(steps):
            b.click("#next")
            self.assertGreater(self.count("svg .lit"), 0)
        b.keys("p")
        self.assertEqual(b.run("return shown.step"), steps - 1)
        before = b.run("return document.querySelector('.stage svg').getAttribute('viewBox')")
        b.keys("+")
        self.assertNotEqual(before, b.run("return document.querySelector('.stage svg').getAttribute('viewBox')"))

    def test_transactions_are_drawn(self):
        self.report("levels", "check", "corpus/transactions/long-fork.hist", "--model", "pc")
        self.browser.one("svg .node.transaction, svg .node.operation")

    def test_an_object_shows_its_state_at_each_step(self):
        b = self.browser
        self.report("calls", "check", "corpus/objects/queue-overtaken.hist", "--model", "linearizability", "--object", "queue")
        b.one("svg .node.wrong")
        states = []
        for _ in range(2):
            b.click("#next")
            states.append(b.text("table.state td"))
        self.assertEqual([state.split("→")[-1].strip() for state in states], ["[1]", "[1, 2]"])

    def test_two_models_stand_side_by_side(self):
        b = self.browser
        self.report("litmus", "litmus", "outcomes", "corpus/litmus/x86/SB.litmus", "--model", "sc,tso")
        b.one("svg .node")
        b.click("tbody tr.link:nth-child(2) button")
        b.until("document.querySelectorAll('.panels .picture svg').length === 2")
        b.click("#next")
        self.assertGreater(self.count("svg .lit"), 0)

    def test_litmus_tests_are_counted(self):
        b = self.browser
        self.report("tests", "litmus", "outcomes", "corpus/litmus/x86", "--model", "sc,tso")
        self.assertEqual(self.count("tbody tr.link"), len(list((ROOT / "corpus/litmus/x86").glob("*.litmus"))))
        b.type("#filter", "allowed")
        b.until("document.querySelectorAll('tbody tr.link').length < 20")

    def test_a_run_is_played(self):
        b = self.browser
        self.report("verify", "verify", "crates/serve/assets/examples/msi-missing.m")
        b.one("svg .node.wrong")
        b.click("#next")
        b.click("#next")
        self.assertGreater(self.count("table.state tr.changed"), 0)
        b.click("#play")
        b.until("shown.step > 2")
        b.click("#play")
        b.click("tbody tr.link:nth-child(2) button")
        b.until("document.querySelector('.picture h2').textContent.includes('WriteCOInitRead')")

    def test_a_contrast_shows_what_separates(self):
        b = self.browser
        self.report("contrast", "contrast", "tso", "sc")
        b.one("svg .node")
        self.assertEqual(b.text("tbody tr.link td.separated"), "separated")

    def test_levels_are_contrasted(self):
        self.report("contrast-levels", "contrast", "si", "ser")
        self.browser.one("svg .node.transaction, svg .node.operation")

    def test_a_line_of_the_lattice_leads_to_a_history(self):
        b = self.browser
        path = pathlib.Path(self.folder.name) / "lattice.html"
        path.write_bytes(subprocess.run([BINARY, "models", "lattice", "--format", "html"], check=True, capture_output=True).stdout)
        b.open(path.as_uri())
        b.one(".map svg .node")
        edge = b.run("return overview && [...document.querySelectorAll('.map [data-edge]')].findIndex((g) => g.textContent.includes('4 ops'))")
        b.run("document.querySelectorAll('.map [data-edge]')[arguments[0]].dispatchEvent(new MouseEvent('click', { bubbles: true }))", edge)
        b.until("document.querySelectorAll('.panels svg .node').length >= 4 && document.querySelectorAll('.map .lit').length > 0")

    def test_hostile_names_do_nothing(self):
        b = self.browser
        script = '"<script>document.title=1</script>"'
        inputs = {
            "reads": (HOSTILE, ["--model", "cc"]),
            "transactions": (
                f'{script}: [ w("{EVIL}",1) w("\\u0007\\n",2) ]\nt1: [ r("{EVIL}",1) r("\\u0007\\n",0) ]\n', ["--model", "ser"]),
            "calls": (
                f'{script}: enqueue("{EVIL}") => null @1..2\nt1: dequeue() => "</svg>{EVIL}\\u001b[31m" @3..4\n',
                ["--model", "linearizability", "--object", "queue"]),
        }
        for kind, (text, options) in inputs.items():
            path = pathlib.Path(self.folder.name) / f"hostile-{kind}.hist"
            path.write_text(text)
            drawn = pathlib.Path(self.folder.name) / f"drawn-{kind}"
            for form in ("dot", "text"):
                ran = subprocess.run([BINARY, "check", path, *options, "--draw", drawn, "--draw-as", form], capture_output=True, text=True)
                self.assertEqual(ran.returncode, 1, ran.stderr + ran.stdout)
                self.assertNotIn("\x1b", ran.stdout)
            for file in drawn.iterdir():
                unruly = [c for c in file.read_text() if ord(c) < 32 and c != "\n"]
                self.assertEqual(unruly, [], file)
            self.report(f"hostile {kind}", "check", str(path), *options)
            b.one("svg .node")
            b.keys("nnn")
            self.assertEqual(self.count("main img, svg script, main script"), 0)
            self.assertIn("hostile", b.run("return document.title"))
            # What the pointer shows is text, too.
            b.run("document.querySelectorAll('svg .node').forEach((node) => node.dispatchEvent(new PointerEvent('pointermove')))")
            self.assertEqual(self.count("#tip *"), 0)
        title = pathlib.Path(self.folder.name) / "hostile.litmus"
        title.write_text(HOSTILE_LITMUS)
        self.report("hostile litmus", "litmus", "outcomes", str(title), "--model", "sc,tso")
        b.one("svg .node")
        self.assertEqual(self.count("main img, svg script, main script"), 0)
        protocol = pathlib.Path(self.folder.name) / "hostile.m"
        text = (ROOT / "crates/serve/assets/examples/msi-missing.m").read_text()
        protocol.write_text(text.replace('rule "upgrade"', f'rule "upgrade {EVIL}</script>"'))
        self.assertIn(EVIL, protocol.read_text())
        self.report("hostile protocol", "verify", str(protocol))
        b.one("svg .node.wrong")
        b.keys("nnnnnnnn")
        self.assertEqual(self.count("main img, svg script, main script"), 0)

    def test_hostile_names_do_nothing_in_svg(self):
        b = self.browser
        folder = pathlib.Path(self.folder.name)
        (folder / "evil.hist").write_text(HOSTILE)
        subprocess.run([BINARY, "check", folder / "evil.hist", "--model", "cc", "--draw", folder / "drawn"], capture_output=True)
        drawn = next((folder / "drawn").glob("*.svg"))
        # As a document and inside a page: neither may run or load anything.
        b.open(drawn.as_uri())
        self.assertEqual(b.run("return document.querySelectorAll('script, img, foreignObject').length"), 0)
        page = folder / "inside.html"
        page.write_text("<!doctype html><html lang=en><title>safe</title><main><h1>x</h1>" + drawn.read_text() + "</main>")
        b.open(page.as_uri())
        self.assertEqual(b.run("return [document.title, document.querySelectorAll('script, img').length]"), ["safe", 0])

    # Pictures: nothing overlaps, as the browser measures it.

    def overlaps(self, kind, *arguments, least=200):
        """Writes a report of random inputs and has every picture of it checked."""
        b = self.browser
        self.report(kind, *arguments)
        b.one("main *")
        b.run((pathlib.Path(__file__).parent / "overlaps.js").read_text() + ";window.overlaps = overlaps")
        pictures, start, count = 0, 0, 1
        while start < count:
            done, count, found = b.run_async(
                "const done = arguments[2]; overlaps.report(arguments[0], arguments[1]).then(done, (e) => done([0, 0, [String(e)]]))",
                start, start + 50)
            self.assertEqual(found, [], kind)
            pictures, start = pictures + done, start + 50
        self.assertGreaterEqual(pictures, least)

    def generated(self, name, *arguments):
        """Makes histories and returns their file."""
        path = pathlib.Path(self.folder.name) / name
        ran = subprocess.run([BINARY, "generate", *arguments], capture_output=True, check=True)
        path.write_bytes(ran.stdout)
        return str(path)

    def test_overlaps_are_found(self):
        b = self.browser
        self.report("damaged", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("svg .node")
        b.run((pathlib.Path(__file__).parent / "overlaps.js").read_text() + ";window.overlaps = overlaps")
        damage = """
            const done = arguments[1];
            detailOf(0).then((data) => {
              const { scene, views } = data.scenes[0];
              const view = structuredClone(views.order);
              const [a, b] = view.edges.filter(Boolean);
              ({
                node: () => (view.nodes[1] = view.nodes[0]),
                label: () => (a.label = b.label),
                line: () => (a.points = [[0, view.nodes[0][1] + 5], [view.width, view.nodes[0][1] + 5]]),
                text: () => (view.nodes[0][2] = 20),
              })[arguments[0]]();
              const stage = document.createElement('div');
              document.body.append(stage);
              done(overlaps.view(scene, view, false, stage).length);
              stage.remove();
            })"""
        for part in ("node", "label", "line", "text"):
            self.assertGreater(b.run_async(damage, part), 0, part)

    def test_the_core_of_a_proof_is_shown(self):
        b = self.browser
        path = self.generated("long.hist", "-m", "broken", "-s", "4", "-n", "3000", "-v", "6", "--seed", "3")
        self.report("core", "check", path, "--model", "cc")
        b.one("svg .node")
        self.assertGreater(self.count("svg .node:not(.gap):not(.premise):not(.proof):not(.wrong)"), 0)
        b.click("button.core")
        self.assertEqual(self.count("svg .node:not(.gap):not(.premise):not(.proof):not(.wrong)"), 0)
        self.assertGreater(self.count("svg .node.gap"), 0)
        b.click("#next")
        self.assertGreater(self.count("svg .lit"), 0)
        # What the pointer shows: the operation with its value.
        b.run("document.querySelector('svg .node.proof').dispatchEvent(new PointerEvent('pointermove', { clientX: 300, clientY: 300 }))")
        self.assertRegex(b.text("#tip"), r"(read|write|read-modify-write) of x\d+: \d+")
        # The names of the lanes stay in sight when the picture is moved.
        b.run("document.querySelector('.stage svg').focus()")
        b.keys("\ue015" * 4)
        self.assertEqual(b.run("return document.querySelector('.heads').classList.contains('moved')"), True)
        top = b.run("const box = (n) => n.getBoundingClientRect(); return box(document.querySelector('.heads text')).top - box(document.querySelector('.stage')).top")
        self.assertGreaterEqual(top, 0)

    def test_nothing_overlaps_in_histories(self):
        small = self.generated("small.hist", "-m", "broken", "-s", "4", "-n", "24", "-v", "3", "--count", "120", "--seed", "1")
        self.overlaps("histories", "check", small, "--model", "cc,sc")
        large = self.generated("large.hist", "-m", "tso", "-s", "6", "-n", "150", "-v", "4", "--count", "60", "--seed", "2")
        self.overlaps("long histories", "check", large, "--model", "sc,cc", least=50)

    def test_nothing_overlaps_in_transactions(self):
        for anomaly in ("long-fork", "write-skew", "g1c", "lost-update", "causal-violation"):
            path = self.generated(
                f"{anomaly}.hist", "--transactions", "--anomaly", anomaly, "-s", "5", "-n", "60", "-v", "6",
                "--size", "1..10", "--times", "--aborted", "0.1", "--count", "25", "--seed", "3")
            self.overlaps(f"transactions {anomaly}", "check", path, "--model", "ser,si,rc", least=40)

    def test_nothing_overlaps_in_calls(self):
        for kind in ("queue", "set", "kv", "counter"):
            path = self.generated(
                f"{kind}.hist", "--object", kind, "-s", "4", "-n", "30", "--plant", "1", "--pending", "0.1",
                "--count", "30", "--seed", "4")
            self.overlaps(f"calls {kind}", "check", path, "--object", kind, "--model", "linearizability", least=50)

    def test_nothing_overlaps_in_executions(self):
        self.overlaps("executions", "litmus", "outcomes", "corpus/litmus", "--model", "sc,tso,pso")

    def test_nothing_overlaps_in_runs_and_the_lattice(self):
        self.overlaps("runs", "verify", "crates/serve/assets/examples/msi-missing.m", least=1)
        b = self.browser
        path = pathlib.Path(self.folder.name) / "lattice.html"
        path.write_bytes(subprocess.run([BINARY, "models", "lattice", "--format", "html"], check=True, capture_output=True).stdout)
        b.open(path.as_uri())
        b.one("main *")
        b.run((pathlib.Path(__file__).parent / "overlaps.js").read_text() + ";window.overlaps = overlaps")
        _, _, found = b.run_async("const done = arguments[0]; overlaps.report(0, 1).then(done, (e) => done([0, 0, [String(e)]]))")
        self.assertEqual(found, [])

    # The local page.

    def test_every_example_is_answered(self):
        b = self.browser
        self.serve()
        examples = b.run("return catalogue.examples.map((e) => [e.kind, e.title])")
        self.assertEqual({kind for kind, _ in examples}, {"history", "litmus", "protocol", "model"})
        for index, (_, title) in enumerate(examples):
            with self.subTest(title):
                b.run("window.before = asked; useExample(catalogue.examples[arguments[0]])", index)
                b.until("asked > before && !byId('about').textContent.includes('…')")
                self.assertEqual(b.text("#errors"), "")
                self.assertGreater(self.count("#results tbody tr"), 0)
        b.run("window.before = asked; changeKind('atlas')")
        b.until("asked > before && document.querySelector('#pictures .map svg .node')")

    def test_verdicts_follow_the_typing(self):
        b = self.browser
        self.serve()
        self.write("t0: w(x,1)\nt1: r(x,1)\n")
        b.until("document.querySelector('#results td.consistent')")
        self.write("t0: w(x,1)\nt1: r(x,1) r(x,0)\n")
        b.until("document.querySelector('#results td.violation')")
        b.one("#pictures svg .node")

    def test_errors_are_underlined_in_place(self):
        b = self.browser
        self.serve()
        self.write("t0: w(x,1)\nt1: r(x,1) oops(((\n")
        b.until("document.querySelector('#marks mark')")
        line, mark = b.run("""
            const mark = document.querySelector('#marks mark');
            const box = (node) => node.getBoundingClientRect();
            const height = parseFloat(getComputedStyle(text).lineHeight);
            return [Math.floor((box(mark).top - box(text).top) / height), mark.textContent]""")
        self.assertEqual(line, 1)
        self.assertTrue(mark)
        self.assertIn("line 2", b.text("#errors"))
        b.click("#errors button")
        self.assertEqual(b.run("return text.value.slice(text.selectionStart).startsWith(document.querySelector('#marks mark').textContent)"), True)

    def test_a_model_is_edited(self):
        b = self.browser
        self.serve()
        b.click("[data-kind=model]")
        b.until("document.querySelector('#results td.separated')")
        self.write('"Broken"\nacyclic po | nonsense as Bad\n')
        b.until("document.querySelector('#marks mark')")
        self.assertIn("nonsense", b.run("return document.querySelector('#marks mark').textContent"))
        self.write('"Weak"\nacyclic po | wr as Bad\n')
        b.until("!document.querySelector('#marks mark') && document.querySelector('#pictures svg .node')")
        self.assertIn("sc", b.text("#results tbody tr"))

    def test_a_file_is_dropped(self):
        b = self.browser
        self.serve()
        drop = """
            const data = new DataTransfer();
            data.items.add(new File([arguments[1]], arguments[0]));
            window.before = asked;
            document.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))"""
        b.run(drop, "sb.litmus", HOSTILE_LITMUS)
        b.until("asked > before && document.querySelector('#results td.allowed')")
        self.assertEqual(b.run("return [document.title, document.querySelectorAll('main img').length]"), ["Consistory", 0])
        b.run(drop, "broken.m", "var x: 0..3;\nrule x = ==> x := 1; end;\n")
        b.until("asked > before && document.querySelector('#errors button')")
        self.assertIn("line 2", b.text("#errors"))

    def test_a_page_is_shared_by_its_fragment(self):
        b = self.browser
        self.serve()
        self.write(HOSTILE)
        address = b.run("return location.href")
        self.assertIn("#1.", address)
        b.open("about:blank")
        b.open(address)
        b.until("typeof text !== 'undefined' && text.value.includes('onerror')")
        b.until("document.querySelector('#pictures svg .node')")
        self.assertEqual(b.run("return [document.title, document.querySelectorAll('main img').length]"), ["Consistory", 0])
        b.open(self.address.split("?")[0] + "#1.garbage")
        b.until("typeof text !== 'undefined' && document.querySelector('#results tbody tr')")

    def test_the_dark_theme_is_readable(self):
        b = self.browser
        self.report("dark", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        b.one("svg .node")
        found = axe.findings(b, self.axe)
        b.cdp("Emulation.setEmulatedMedia", {"features": []})
        self.assertEqual([f for f in found if f[0] in ("serious", "critical")], [])

    # Sizes: numbers of elements and bytes, not times.

    def test_a_large_history_makes_a_small_page(self):
        b = self.browser
        folder = pathlib.Path(self.folder.name)
        history = folder / "large.hist"
        with open(history, "w") as out:
            for session in range(10):
                ops = " ".join(f"w(k{session}_{i % 50},{i + 1})" for i in range(10_000))
                out.write(f"s{session}: {ops}\n")
            out.write("a: w(x,1) w(y,1)\nb: r(y,1) r(x,0)\n")
        self.report("large", "check", str(history), "--model", "cc")
        self.assertLess((folder / "large.html").stat().st_size, 5_000_000)
        b.one("svg .node")
        b.click("#next")
        self.assertGreater(self.count("svg .lit"), 0)
        self.assertLess(self.count("svg *"), 2_000)


if __name__ == "__main__":
    BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        SCREENSHOTS = pathlib.Path(sys.argv[at + 1])
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        del sys.argv[at:at + 2]
    unittest.main()
