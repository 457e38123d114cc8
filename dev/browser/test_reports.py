"""Reports of every kind, opened and used in a real browser."""

import json
import pathlib
import subprocess
import time

from base import EVIL, HOSTILE, HOSTILE_LITMUS, ROOT, PageTest, Shared
from webdriver import ELEMENT


class Reports(PageTest):
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
        path.write_bytes(subprocess.run([Shared.binary, "models", "lattice", "--format", "html"], check=True, capture_output=True).stdout)
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
                ran = subprocess.run([Shared.binary, "check", path, *options, "--draw", drawn, "--draw-as", form], capture_output=True, text=True)
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
            # The tooltip is text, too.
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
        model = self.written("hostile.cat", f'"{EVIL}</script>"\nacyclic po | wr as Bad\n')
        self.report("hostile model", "contrast", model, "sc")
        b.one("svg .node")
        self.assertEqual(self.count("main img, svg script, main script"), 0)
        self.report("hostile protocol", "verify", str(protocol))
        b.one("svg .node.wrong")
        b.keys("nnnnnnnn")
        self.assertEqual(self.count("main img, svg script, main script"), 0)

    def test_hostile_names_do_nothing_in_svg(self):
        b = self.browser
        folder = pathlib.Path(self.folder.name)
        (folder / "evil.hist").write_text(HOSTILE)
        subprocess.run([Shared.binary, "check", folder / "evil.hist", "--model", "cc", "--draw", folder / "drawn"], capture_output=True)
        drawn = next((folder / "drawn").glob("*.svg"))
        # As a document and inside a page, the picture must not run or load anything.
        b.open(drawn.as_uri())
        self.assertEqual(b.run("return document.querySelectorAll('script, img, foreignObject').length"), 0)
        page = folder / "inside.html"
        page.write_text("<!doctype html><html lang=en><title>safe</title><main><h1>x</h1>" + drawn.read_text() + "</main>")
        b.open(page.as_uri())
        self.assertEqual(b.run("return [document.title, document.querySelectorAll('script, img').length]"), ["safe", 0])

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
        # The tooltip shows the operation with its value.
        b.run("document.querySelector('svg .node.proof').dispatchEvent(new PointerEvent('pointermove', { clientX: 300, clientY: 300 }))")
        self.assertRegex(b.text("#tip"), r"(read|write|read-modify-write) of x\d+: \d+")
        # The names of the lanes stay visible when the picture is moved.
        b.run("document.querySelector('.stage svg').focus()")
        b.keys("\ue015" * 4)
        self.assertEqual(b.run("return document.querySelector('.heads').classList.contains('moved')"), True)
        top = b.run("const box = (n) => n.getBoundingClientRect(); return box(document.querySelector('.heads text')).top - box(document.querySelector('.stage')).top")
        self.assertGreaterEqual(top, 0)

    # Typical actions on the page of a history.

    TIMED = "t0: w(x,1)@1..4 w(y,1)@5..9\nt1: r(y,1)@12..15 r(x,0)@16..20\n"

    def view_box(self):
        return [float(n) for n in self.browser.run("return document.querySelector('.stage svg').getAttribute('viewBox')").split()]

    def test_a_step_lights_its_edge_its_premises_and_its_sentence(self):
        b = self.browser
        self.report("premises", "check", "corpus/histories", "--model", "sc,tso")
        cases = b.run("return overview.cases.length")
        supported = False
        for case in range(cases):
            b.run("location.hash = `#/case/${arguments[0]}`", case)
            b.until("document.title.startsWith(overview.cases[arguments[0]][0])", case)
            for step in range(1, self.count("ol.steps li") + 1):
                b.keys("n")
                self.assertEqual(b.run("return [...document.querySelectorAll('ol.steps li')].findIndex((li) => li.getAttribute('aria-current')) + 1"), step)
                supported = supported or self.count("svg .edge.lit") > 0 and self.count("svg .edge.support") > 0
            if supported:
                break
        self.assertTrue(supported)

    def test_relations_are_switched_off_and_on(self):
        b = self.browser
        self.report("relations", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("svg .edge")
        visible = "return [...document.querySelectorAll('svg .edge')].filter((e) => e.style.display !== 'none').map((e) => e.dataset.relation)"
        everything = b.run(visible)
        self.assertIn("wr", everything)
        b.click("label[data-relation=wr] input")
        self.assertEqual(b.run(visible), [relation for relation in everything if relation != "wr"])
        b.click("label[data-relation=wr] input")
        self.assertEqual(b.run(visible), everything)

    def test_the_mouse_zooms_and_moves_the_picture(self):
        b = self.browser
        self.report("mouse", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("svg .node")
        before = self.view_box()
        x, y = b.middle(".stage")
        b.wheel(x, y, -200)
        b.until("document.querySelector('.stage svg').getAttribute('viewBox').split(' ')[2] < arguments[0]", before[2])
        zoomed = self.view_box()
        b.drag(x, y, x - 60, y - 30)
        moved = self.view_box()
        self.assertGreater(moved[0], zoomed[0])
        self.assertGreater(moved[1], zoomed[1])
        b.click("button[title^=fit]")
        self.assertEqual(self.view_box()[:2], before[:2])

    def test_the_pointer_shows_values_and_times(self):
        b = self.browser
        self.report("hover", "check", self.written("timed.hist", self.TIMED), "--model", "cc")
        b.one("svg .node")
        b.point(*b.middle("svg .node.proof"))
        b.until("!document.getElementById('tip').hidden")
        self.assertRegex(b.text("#tip"), r"(?s)t\d:\d.*(read|write) of [xy]: \d.*from \d+ to \d+")
        b.point(5, 5)
        b.until("document.getElementById('tip').hidden")

    def test_time_and_order_are_two_views(self):
        b = self.browser
        self.report("views", "check", self.written("timed.hist", self.TIMED), "--model", "cc")
        b.one("svg .edge")
        buttons = "[...document.querySelectorAll('.picture .tools button')]"
        press = f"{buttons}.find((b) => b.textContent === arguments[0]).click()"
        b.run(press, "time view")
        b.until("document.querySelectorAll('svg .edge').length === 0")
        # An operation that ended before another one began is to the left of it.
        left = b.run("return [...document.querySelectorAll('svg .node rect')].map((r) => Number(r.getAttribute('x')))")
        self.assertEqual(left, sorted(left))
        b.run(press, "order view")
        b.until("document.querySelectorAll('svg .edge').length > 0")

    def test_a_linearization_is_a_line_through_the_calls(self):
        b = self.browser
        calls = "t0: enqueue(1) @10..11 enqueue(2) @12..13\nt1: dequeue() => 1 @9..22\n"
        self.report("line", "check", self.written("line.hist", calls), "--object", "queue", "--model", "linearizability")
        b.one("svg .bead")
        self.assertEqual(b.run("return [...document.querySelectorAll('svg .bead text')].map((t) => t.textContent)"), ["1", "2", "3"])
        self.assertEqual(self.count("svg path.chain"), 2)
        # The line is drawn up to the current step.
        visible = "[...document.querySelectorAll('svg .bead')].filter((n) => getComputedStyle(n).visibility === 'visible').length"
        for step in (1, 2, 3):
            b.keys("n")
            self.assertEqual(b.run(f"return {visible}"), step)
        # The axis shows times of the history.
        ticks = b.run("return [...document.querySelectorAll('svg .tick')].map((t) => Number(t.textContent))")
        self.assertEqual(ticks, sorted(ticks))
        self.assertLessEqual(set(ticks), {9, 10, 11, 12, 13, 22})
        self.assertGreaterEqual(len(ticks), 3)

    def test_a_reference_in_a_sentence_finds_its_operation(self):
        b = self.browser
        self.report("references", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("ol.steps .ref")
        b.point(*b.middle("ol.steps .ref"))
        b.until("document.querySelectorAll('svg .node.pointed').length === 1")
        b.point(5, 5)
        b.until("document.querySelectorAll('svg .node.pointed').length === 0")

    def test_the_cycle_of_an_execution_stands_out(self):
        b = self.browser
        self.report("cycle", "litmus", "outcomes", "corpus/executions/aarch64/MP.litmus", "--model", "sc,aarch64")
        b.one("svg .node")
        self.assertIn("forbids the cycle W x=1 -po-> W y=1 -rf-> R y=1 -po-> R x=0 -fr-> W x=1", b.text(".panels"))
        self.assertEqual(self.count("svg .node.proof"), 4)
        for _ in range(4):
            b.keys("n")
            self.assertEqual(self.count("svg .edge.lit"), 1)
        b.keys("n")
        self.assertEqual(self.count("svg .edge.lit"), 4)

    def test_nothing_is_cut_in_a_narrow_window(self):
        b = self.browser
        self.addCleanup(b.cdp, "Emulation.clearDeviceMetricsOverride", {})
        for kind, arguments in {
            "batch": ["check", "corpus/histories", "--model", "sc,tso"],
            "calls": ["check", "corpus/objects/queue-overtaken.hist", "--object", "queue", "--model", "linearizability"],
            "litmus": ["litmus", "outcomes", "corpus/litmus/x86/IRIW.litmus", "--model", "sc,tso"],
            "verify": ["verify", "crates/serve/assets/examples/msi-missing.m"],
        }.items():
            for width in (360, 700, 1000):
                b.cdp("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
                self.report(f"narrow {kind}", *arguments)
                b.one("main h1")
                wide = b.run("return [document.documentElement, document.querySelector('main')].map((n) => n.scrollWidth - n.clientWidth)")
                self.assertEqual(wide, [0, 0], f"{kind} at {width}")
                if kind != "batch":
                    self.assertGreater(b.run("return document.querySelector('.stage').clientHeight"), 60, kind)

    def test_texts_are_copied_and_the_certificate_downloaded(self):
        b = self.browser
        self.report("copied", "check", "corpus/histories/message-passing.hist", "--model", "cc")
        b.one("svg .node")
        line = json.loads(self.tool("check", "corpus/histories/message-passing.hist", "--model", "cc", "--format", "json").stdout)
        # The clipboard of a headless browser is unreliable, so the test checks the text written to it.
        b.run("window.copied = []; navigator.clipboard.writeText = async (text) => { copied.push(text); }")
        b.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        for button in b.find(".case button"):
            if b.run("return arguments[0].textContent.startsWith('copy')", {ELEMENT: button}):
                b.run("arguments[0].click()", {ELEMENT: button})
        explanation, history, command = b.run("return copied")
        self.assertIn("WriteCOInitRead", explanation)
        self.assertEqual(history.splitlines()[-1], "t1: r(y,1) r(x,0)")
        self.assertEqual(command, "consistory check corpus/histories/message-passing.hist --model cc")
        again = json.loads(self.tool(*command.split()[1:], "--format", "json").stdout)
        self.assertEqual(again["results"][0]["verdict"], line["results"][0]["verdict"])
        b.cdp("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": self.folder.name})
        b.click("a[download]")
        for _ in range(100):
            if self.path("certificate-cc.json").exists():
                break
            time.sleep(0.05)
        self.assertEqual(json.loads(self.path("certificate-cc.json").read_text()), line["results"][0]["certificate"])

    def test_a_report_asks_for_nothing(self):
        b = self.browser
        path = self.report("offline", "check", "corpus/histories", "--model", "sc")
        b.one("tbody tr.link")
        self.assertEqual(b.run("return performance.getEntriesByType('resource').map((e) => e.name)"), [])
        policy = b.run("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
        self.assertIn("default-src 'none'", policy)
        self.assertNotRegex(path.read_text(), r"""(?:src|href)=["']?(?:https?:)?//""")

    def test_the_keyboard_is_enough(self):
        b = self.browser
        self.report("keyboard", "check", "corpus/histories", "--model", "sc")
        b.one("tbody tr.link")
        tab, enter, escape, right = "\ue004", "\ue007", "\ue00c", "\ue014"
        focused = "return document.activeElement.matches(arguments[0])"

        def tab_to(selector):
            for _ in range(80):
                b.keys(tab)
                if b.run(focused, selector):
                    return
            self.fail(f"the keyboard does not reach {selector}")

        b.keys("/")
        self.assertTrue(b.run(focused, "#filter"))
        b.keys("message-passing violation")
        b.until("document.querySelectorAll('tbody tr.link').length < 3")
        tab_to("tbody tr.link a")
        b.keys(enter)
        b.until("document.querySelector('svg .node')")
        tab_to("#next")
        b.keys(enter)
        self.assertEqual(b.run("return shown.step"), 1)
        tab_to("input[type=range]")
        b.keys(right)
        self.assertEqual(b.run("return shown.step"), 2)
        tab_to(".stage svg")
        before = self.view_box()
        b.keys(right)
        self.assertGreater(self.view_box()[0], before[0])
        b.keys(escape)
        b.one("#filter")
        self.assertEqual(b.run("return document.getElementById('filter').value"), "message-passing violation")

    def test_a_batch_is_counted_and_turned_page_by_page(self):
        b = self.browser
        path = self.generated("many.hist", "-m", "broken", "-s", "3", "-n", "12", "-v", "2", "--count", "450", "--seed", "5")
        self.report("many", "check", path, "--model", "cc,sc")
        lines = [json.loads(line) for line in self.tool("check", path, "--model", "cc,sc", "--format", "json").stdout.splitlines()]
        words = {model: [next(r["verdict"] for r in line["results"] if r["model"] == model) for line in lines] for model in ("cc", "sc")}
        b.one("tbody tr.link")
        table = b.run("return [...document.querySelector('table').querySelectorAll('tbody tr')].map((tr) => [...tr.children].filter((td) => !td.matches('.share')).map((td) => td.textContent))")
        kinds = b.run("return [...document.querySelector('table').querySelectorAll('thead th')].slice(1).map((th) => th.textContent)")
        self.assertEqual(table, [[model, *(str(words[model].count(kind)) for kind in kinds)] for model in ("cc", "sc")])
        # A count links to the counted histories, and the bar has a part for each.
        some = words["cc"].count("violation")
        self.assertEqual(b.run("return [...document.querySelector('.bar').children].map((part) => Number(part.style.flexGrow)).sort((a, b) => a - b)"), sorted([some, 450 - some]))
        b.click(".counts td.violation button")
        b.until("document.querySelector('.tools [role=status]').textContent.startsWith(arguments[0])", str(sum("violation" in pair for pair in zip(words["cc"], words["sc"]))))
        b.run("const s = document.querySelector('select'); s.value = ''; s.dispatchEvent(new Event('change'))")
        self.assertEqual(self.count("tbody tr.link"), 200)
        for _ in range(2):
            b.click("button[aria-label='next page']")
        self.assertEqual(self.count("tbody tr.link"), 50)
        b.run("const s = document.querySelector('select'); s.value = 'consistent'; s.dispatchEvent(new Event('change'))")
        wanted = sum("consistent" in pair for pair in zip(words["cc"], words["sc"]))
        self.assertIn(f"{wanted} of 450", b.text(".tools [role=status]"))
        column = "[...document.querySelectorAll('tbody tr.link')].map((tr) => tr.children[2].textContent)"
        b.run("document.querySelectorAll('th[scope=col] button')[2].click()")
        self.assertEqual(b.run(f"return {column}"), sorted(b.run(f"return {column}")))
        b.run("document.querySelectorAll('th[scope=col] button')[2].click()")
        self.assertEqual(b.run(f"return {column}"), sorted(b.run(f"return {column}"), reverse=True))
        b.click("tbody tr.link a")
        b.one(".case h1")

    def test_the_core_of_an_objects_violation_has_steps_of_its_own(self):
        b = self.browser
        calls = ("t0: enqueue(1) @10..11 enqueue(2) @12..13\nt1: dequeue() => 2 @20..21 dequeue() => 1 @22..23\n"
                 "t2: enqueue(7) @14..15 enqueue(8) @16..17 enqueue(9) @18..19\n")
        self.report("objects core", "check", self.written("core.hist", calls), "--object", "queue", "--model", "linearizability")
        b.one("svg .node.wrong")
        self.assertEqual(self.count("svg .node"), 6)
        self.assertEqual(self.count("svg .node.proof"), 2)
        b.click("#next")
        b.click("button.core")
        self.assertEqual(self.count("svg .node"), 3)
        self.assertTrue(b.run("return document.activeElement.matches('button.core')"))
        states = []
        b.run("document.querySelector('input[type=range]').focus()")
        for _ in range(2):
            b.keys("\ue014")
            states.append(b.text("table.state td").split("→")[-1].strip())
        self.assertEqual(states, ["[1]", "[1, 2]"])
        b.keys("\ue014")
        self.assertEqual(self.count("svg .node.wrong.lit"), 1)
        b.click("button.core")
        self.assertEqual(self.count("svg .node"), 6)

    def test_every_outcome_has_an_execution_per_model_that_allows_it(self):
        b = self.browser
        for name, models in (("x86/IRIW", "sc,tso"), ("paper/A7", "sc,pso")):
            self.report("outcomes", "litmus", "outcomes", f"corpus/litmus/{name}.litmus", "--model", models)
            b.one("svg .node")
            rows = self.count(".results tbody tr")
            self.assertGreater(rows, 2)
            for row in range(rows):
                b.run("document.querySelectorAll('.results tbody tr')[arguments[0]].click()", row)
                allowed = b.run("return [...document.querySelectorAll('.results tbody tr')[arguments[0]].children].filter((td) => /^(yes|allowed)/.test(td.textContent)).length", row)
                b.until("document.querySelectorAll('.panels .picture svg').length === arguments[0]", allowed)

    def test_a_shrunk_history_is_what_is_drawn(self):
        b = self.browser
        path = self.generated("shrink.hist", "-m", "broken", "-s", "4", "-n", "3000", "-v", "6", "--seed", "3")
        self.report("shrunk", "check", path, "--model", "cc", "--shrink")
        b.one("svg .node")
        result = json.loads(self.tool("check", path, "--model", "cc", "--shrink", "--format", "json").stdout)["results"][0]
        operations = sum(len(line.split(":", 1)[1].split()) for line in result["shrunk"].splitlines() if line[0] not in "#" and not line.startswith("init"))
        self.assertEqual(self.count("svg .node:not(.initial)"), operations)

    def test_an_edge_of_the_lattice_answers_the_keyboard(self):
        b = self.browser
        self.path("keys.html").write_text(self.tool("models", "lattice", "--format", "html").stdout)
        b.open(self.path("keys.html").as_uri())
        b.one(".map svg .edge.choice")
        b.run("document.querySelectorAll('.map .edge.choice')[3].focus()")
        wanted = b.run("return document.activeElement.getAttribute('aria-label')")
        b.keys("\ue007")
        b.until("document.querySelectorAll('.panels svg .node').length > 0")
        chosen = b.run("return [...document.querySelector('.results tr[aria-current]').children].slice(0, 3).map((td) => td.textContent).join(', ')")
        self.assertEqual(chosen, wanted)

    def test_a_database_under_test(self):
        b = self.browser
        self.report("sqlite", "test", "sqlite", "--time", "1s", "--output", self.path("sqlite"))
        b.one("svg.chart .series")
        self.assertEqual(self.count("svg.chart"), 2)
        self.assertIn("consistent", b.text(".results"))
        script = str(ROOT / "docs/examples/broken_store.py")
        ran = self.tool("test", "--command", script, "--system", script, "--nodes", "n1,n2", "--time", "4s",
                        "--reproduce", "1", "--output", self.path("broken"), "--report", self.path("broken.html"), codes=(0, 1, 2))
        if ran.returncode == 2:
            self.skipTest(ran.stderr)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        b.open(self.path("broken.html").as_uri())
        b.one("svg .node")
        self.assertRegex(b.text(".facts"), r"run again\s+with \d+ clients and 0 faults: a violation in [01] of 1 runs")
        self.assertIn("violation", b.text(".results"))
        self.assertRegex(b.text("code"), r"^consistory test --seed \d+ ")
        b.keys("n")
        self.assertGreater(self.count("svg .lit"), 0)

    def test_a_collection_under_test(self):
        b = self.browser
        ran = self.tool("test", "jdk:Broken", "--methods", "putIfAbsent,get", "--keys", "1", "--time", "60s", "--failures", "1",
                        "--report", self.path("collection.html"), codes=(1, 2))
        if ran.returncode == 2:
            self.skipTest(ran.stderr)
        b.open(self.path("collection.html").as_uri())
        b.one("svg .node.wrong")
        self.assertIn("violation", b.text(".results"))
        b.keys("n")
        self.assertGreater(self.count("table.state td"), 0)
        self.assertTrue(b.text("code").startswith("consistory test jdk:Broken --seed "))

    def test_every_kind_is_readable_in_the_dark(self):
        b = self.browser
        self.addCleanup(self.dark, False)
        queue = "corpus/objects/queue-overtaken.hist"
        for kind, arguments in {
            "batch": ["check", "corpus/histories", "--model", "sc"],
            "history": ["check", "corpus/histories/message-passing.hist", "--model", "cc"],
            "calls": ["check", queue, "--object", "queue", "--model", "linearizability"],
            "transactions": ["check", "corpus/transactions/long-fork.hist", "--model", "pc"],
            "litmus": ["litmus", "outcomes", "corpus/litmus/x86/SB.litmus", "--model", "sc,tso"],
            "verify": ["verify", "crates/serve/assets/examples/msi-missing.m"],
            "contrast": ["contrast", "tso", "sc"],
            "test": ["test", "sqlite", "--time", "500ms", "--output", self.path("dark-sqlite")],
        }.items():
            self.report(f"dark {kind}", *arguments)
            self.dark()
            b.one("main h1")
            b.keys("nn")
            self.assertEqual(b.run("return getComputedStyle(document.body).backgroundColor"), "rgb(14, 18, 22)")
            self.assertEqual(self.serious(), [], kind)
        self.path("dark.html").write_text(self.tool("models", "lattice", "--format", "html").stdout)
        b.open(self.path("dark.html").as_uri())
        b.one(".map svg .node")
        self.assertEqual(self.serious(), [])

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
