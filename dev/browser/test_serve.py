"""The local page in a real browser."""

import socket
import time
import urllib.parse

from base import EVIL, HOSTILE, HOSTILE_LITMUS, ROOT, PageTest


class LocalPage(PageTest):
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

    DROP = """
        const data = new DataTransfer();
        data.items.add(new File([arguments[1]], arguments[0]));
        window.before = asked;
        document.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))"""

    def test_keys_are_answered_as_they_come(self):
        b = self.browser
        self.serve()
        b.run("text.focus(); text.select()")
        b.keys("t0: w(x,1)\ue007t1: r(x,1)")
        b.until("document.querySelector('#results td.consistent') && !document.querySelector('#results td.violation')")
        b.keys(" r(x,0)")
        b.until("document.querySelector('#results td.violation')")
        b.keys("\ue003" * 7 + " r(x")
        b.until("document.querySelector('#marks mark')")
        b.keys(",1)")
        b.until("!document.querySelector('#marks mark') && !document.querySelector('#results td.violation')")

    def test_broken_files_of_every_kind_show_where_they_break(self):
        b = self.browser
        self.serve()
        for name, text, line, marked in [
            ("broken.hist", "t0: w(x,1)\nt1: r(x,1) oops(((\n", 2, None),
            ("broken.jsonl", '{"session":"a","op":"write","key":"x","value":1}\n{"session":"a","op":\n', 2, None),
            ("broken.litmus", HOSTILE_LITMUS.replace("MOV [y],$1", "MOVE [y],$"), 5, "MOVE"),
            ("broken.m", "var x: 0..3;\nrule x = ==> x := 1; end;\n", 2, "==>"),
            ("broken.cat", '"Broken"\nacyclic po | nonsense as Bad\n', 2, "nonsense"),
        ]:
            with self.subTest(name):
                b.run(self.DROP, name, text)
                b.until("asked > before && !byId('about').textContent.includes('…') && document.querySelector('#errors button') && text.value === arguments[0]", text)
                self.assertIn(f"line {line}", b.text("#errors button"))
                at = b.run("return [marks.textContent.slice(0, -1), [...marks.childNodes].findIndex((n) => n.nodeName === 'MARK')]")
                self.assertEqual(at[0].rstrip(), text.rstrip())
                if marked:
                    self.assertIn(marked, b.run("return document.querySelector('#marks mark').textContent"))
                # The underlined place is on the line that the message names.
                before = b.run("let s = ''; for (const n of marks.childNodes) { if (n.nodeName === 'MARK') break; s += n.textContent; } return s")
                self.assertEqual(before.count("\n") + 1, line)
        b.run(self.DROP, "noise.hist", "\x00\x01\ufffd\x1b[2J" * 100)
        b.until("asked > before && document.querySelector('#errors').textContent && !byId('about').textContent.includes('…')")

    def test_files_and_texts_that_are_too_large_are_refused(self):
        b = self.browser
        self.serve()
        b.run("window.before = asked; take(new File([new Uint8Array(5 << 20)], 'large.hist'))")
        b.until("byId('errors').textContent.includes('too large')")
        # The server itself rejects text that was typed or pasted.
        b.run("window.before = asked; text.value = 't0: ' + 'w(x,1) '.repeat(700000); text.dispatchEvent(new Event('input'))")
        b.until("byId('errors').textContent.includes('longer than 4194304 bytes')")
        refused = [message for message in b.errors() if "413" not in message]
        self.assertEqual(refused, [])
        self.write("t0: w(x,1)\nt1: r(x,1)\n")
        b.until("document.querySelector('#results td.consistent')")

    def test_the_page_survives_a_thousand_connections(self):
        b = self.browser
        self.serve()
        address = urllib.parse.urlsplit(self.address)
        sockets = []
        for _ in range(1000):
            try:
                sockets.append(socket.create_connection((address.hostname, address.port), 5))
            except OSError:
                break
        self.assertGreater(len(sockets), 900)
        for one in sockets[:500]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: ")
        sockets[-1].settimeout(30)
        self.assertRegex(sockets[-1].recv(100).decode(), "503|408|^$")
        for one in sockets:
            one.close()
        time.sleep(0.5)
        self.write("t0: w(x,1)\nt1: r(x,1) r(x,0)\n")
        b.until("document.querySelector('#results td.violation')")

    def test_a_models_difference_follows_its_text(self):
        b = self.browser
        self.serve()
        b.click("[data-kind=model]")
        b.until("document.querySelector('#results td.separated')")
        definitions = b.run("return Object.fromEntries(catalogue.definitions.map((d) => [d.id, d.text]))")
        self.write(definitions["sc"])
        b.until("!document.querySelector('#results td.separated') && document.querySelector('#results tbody tr')")
        self.write('"Weak"\nacyclic po | wr as Bad\n')
        b.until("document.querySelector('#results td.separated') && document.querySelector('#pictures svg .node')")
        # The first lines of the explanation are the separating history.
        explained = b.run("return document.querySelector('#results pre').textContent")
        weak = "\n".join(line.strip() for line in explained.split("\n\n")[1].splitlines())
        self.write('"Weaker"\nacyclic po as Bad\n')
        b.until("document.querySelector('#results td.separated') && !byId('results').classList.contains('stale')")
        # The command line judges the smallest separating history.
        path = self.written("separating.hist", weak)
        self.assertEqual(self.tool("check", path, "--model", "sc", "-q").returncode, 1)

    def test_examples_are_one_click_away(self):
        b = self.browser
        self.serve()
        self.assertEqual(b.run("return byId('examples').value"), "0")
        # The user's own text is not an example.
        self.write("t0: w(x,1)\n")
        self.assertEqual(b.run("return byId('examples').value"), "")
        for option in b.run("return [...document.querySelectorAll('#examples option')].map((o) => o.value).filter(Boolean)"):
            b.run("window.before = asked")
            b.click(f"#examples option[value='{option}']")
            b.until("asked > before && !byId('about').textContent.includes('…') && document.querySelector('#results tbody tr')")

    def test_hostile_texts_of_every_kind_do_nothing(self):
        b = self.browser
        self.serve()
        protocol = (ROOT / "crates/serve/assets/examples/msi-missing.m").read_text()
        for name, text in {
            "a.hist": HOSTILE,
            "calls.hist": f't0: enqueue("{EVIL}") => null @1..2\nt1: dequeue() => "</svg>{EVIL}\\u001b[31m" @3..4\n',
            "levels.hist": f't0: [ w("{EVIL}",1) w(y,1) ]\nt1: [ r("{EVIL}",1) r(y,0) ]\n',
            "a.litmus": HOSTILE_LITMUS,
            "a.m": protocol.replace('rule "upgrade"', f'rule "upgrade {EVIL}</script>"'),
            "a.cat": f'"{EVIL}"\nacyclic po | wr as Bad\n',
            "errors.hist": f"t0: {EVIL}\n</textarea><script>document.title=1</script>\n",
        }.items():
            with self.subTest(name):
                b.run(self.DROP, name, text)
                b.until("asked > before && text.value === arguments[0] && !byId('about').textContent.includes('…')", text)
                b.keys("nnnn")
                self.assertEqual(b.run("return [document.title, document.querySelectorAll('main img, main script, svg script').length]"), ["Consistory", 0])

    def test_the_core_of_an_objects_violation_is_on_the_page(self):
        b = self.browser
        self.serve()
        self.write("t0: enqueue(1) @10..11 enqueue(2) @12..13\nt1: dequeue() => 2 @20..21\nt2: enqueue(7) @14..15 enqueue(8) @16..17\n")
        b.until("document.querySelector('#pictures button.core')")
        everything = self.count("#pictures svg .node")
        b.click("#pictures button.core")
        self.assertLess(self.count("#pictures svg .node"), everything)
        b.keys("n")
        self.assertGreater(self.count("#pictures svg .lit"), 0)
