"""Pictures: nothing overlaps, measured by the browser."""

import pathlib
import subprocess

from base import ROOT, PageTest, Shared


class Pictures(PageTest):
    def overlaps(self, kind, *arguments, least=200):
        """Writes a report on random inputs and checks all of its pictures."""
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
        # Every broken protocol of the corpus: the failing run, its history and the proof.
        corpus, protocols = ROOT / "corpus/protocols", ["crates/serve/assets/examples/msi-missing.m"]
        for patch in sorted(corpus.glob("*.patch")):
            base = patch.read_text().splitlines()[0].removeprefix("--- ")
            protocols.append(str(self.path(f"{patch.stem}.m")))
            subprocess.run(["patch", "-s", "-o", protocols[-1], corpus / base, patch], check=True)
        self.overlaps("runs", "verify", *protocols, least=2 * len(protocols))
        b = self.browser
        path = pathlib.Path(self.folder.name) / "lattice.html"
        path.write_bytes(subprocess.run([Shared.binary, "models", "lattice", "--format", "html"], check=True, capture_output=True).stdout)
        b.open(path.as_uri())
        b.one("main *")
        b.run((pathlib.Path(__file__).parent / "overlaps.js").read_text() + ";window.overlaps = overlaps")
        _, _, found = b.run_async("const done = arguments[0]; overlaps.report(0, 1).then(done, (e) => done([0, 0, [String(e)]]))")
        self.assertEqual(found, [])
