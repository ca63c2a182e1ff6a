import os
import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from chains import entry, kernel, py, run, sample
from pyinject_perf.collapse import Collapse
from pyinject_perf.flamegraph import Flamegraph

SVG = "{http://www.w3.org/2000/svg}"
CHAINS = [[entry("main"), py("<module>"), py("a"), kernel("read")]] * 3 + [[entry("main"), py("<module>"), py("b")]]


def frames(lines):
    """(name, begin, end, depth) of each function."""
    root = ElementTree.fromstring("\n".join(lines).split("?>", 1)[1])
    return [
        (g.get("data-n"), int(g.get("data-b")), int(g.get("data-e")), int(g.get("data-d")))
        for g in root.iter(SVG + "g")
    ]


def draw(arguments, *chains, **facts):
    return run(Flamegraph, arguments, [sample(chain, **facts) for chain in chains])[0]


class Drawing(unittest.TestCase):
    def test_functions_are_as_wide_as_their_samples(self):
        self.assertEqual(
            frames(draw([], *CHAINS)),
            [
                ("all", 0, 4, 0),
                ("python3", 0, 4, 1),
                ("main", 0, 4, 2),
                ("py::<module>:/app/main.py", 0, 4, 3),
                ("py::a:/app/main.py", 0, 3, 4),
                ("py::b:/app/main.py", 3, 4, 4),
                ("read_[k]", 0, 3, 5),
            ],
        )

    def test_figures_are_those_of_collapsed(self):
        for arguments in ([], ["--python-only"], ["--period"]):
            folded = run(Collapse, arguments, [sample(chain) for chain in CHAINS])[0]
            total = sum(int(line.rsplit(" ", 1)[1]) for line in folded)
            drawn = frames(draw(arguments, *CHAINS))
            self.assertEqual(drawn[0], ("all", 0, total, 0))
            names = {name for line in folded for name in line.rsplit(" ", 1)[0].split(";")}
            self.assertEqual({name for name, *_ in drawn[1:]}, names)

    def test_narrow_functions_are_omitted(self):
        names = [name for name, *_ in frames(draw(["--least", "30"], *CHAINS))]
        self.assertIn("py::a:/app/main.py", names)
        self.assertNotIn("py::b:/app/main.py", names)

    def test_names_cannot_break_the_page(self):
        hostile = '</title><script>alert("x")</script>\x01\ud800&'
        (shown,) = [name for name, *_ in frames(draw([], [entry(hostile)])) if "alert" in name]
        self.assertEqual(shown, '</title><script>alert("x")</script>??&')

    def test_waits_have_nanoseconds(self):
        text = "\n".join(draw(["--off-cpu"], CHAINS[0], event="context-switches", period=5000))
        self.assertIn("5000 ns", text)

    def test_output_is_a_file_on_demand(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.svg")
            self.assertEqual(draw(["--output", path], *CHAINS), [])
            with open(path, encoding="utf-8") as file:
                self.assertEqual(len(frames(file.read().split("\n"))), 7)

    def test_nothing_is_loaded_from_elsewhere(self):
        text = "\n".join(draw([], *CHAINS))
        self.assertEqual(re.findall(r"https?://[^\"]*", text), ["http://www.w3.org/2000/svg"])


if __name__ == "__main__":
    unittest.main()
