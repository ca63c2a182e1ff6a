import contextlib
import io
import unittest

from chains import STRIPPED, entry, kernel, py, run, sample
from pyinject_perf.table import short_paths, shorten, width
from pyinject_perf.top import Top

LOOP = entry("_PyEval_EvalFrameDefault")


def rows(arguments, samples):
    """function -> [self, python, native, kernel, total] of the table."""
    lines, _ = run(Top, arguments, samples)
    start = lines[1].index("function")
    return {line[start:].split("  ")[0]: [c for c in line[:start].split() if "%" not in c] for line in lines[2:]}


class Counting(unittest.TestCase):
    def test_self_and_total(self):
        chain = [py("<module>"), LOOP, py("f"), LOOP]
        table = rows([], [sample(chain), sample(chain), sample(chain[:2])])
        self.assertEqual(table["f"], ["2", "2", "0", "0", "2"])
        self.assertEqual(table["<module>"], ["1", "1", "0", "0", "3"])

    def test_recursion_counts_once(self):
        table = rows([], [sample([py("f"), LOOP, py("g"), LOOP, py("f"), LOOP])])
        self.assertEqual(table["f"], ["1", "1", "0", "0", "1"])
        self.assertEqual(table["g"], ["0", "0", "0", "0", "1"])

    def test_self_is_split(self):
        f = py("f")
        table = rows(
            [],
            [
                sample([f]),
                sample([f, entry(None, STRIPPED)]),
                sample([f, LOOP, entry("list_sort")]),
                sample([f, LOOP, entry("read", "/libc.so.6"), kernel("vfs_read")]),
            ],
        )
        self.assertEqual(table["f"], ["4", "2", "1", "1", "4"])

    def test_nothing_is_hidden(self):
        samples = [sample([py("f%d" % i), LOOP]) for i in range(5)] + [sample([entry("main")]), sample([kernel("x")])]
        lines, _ = run(Top, ["--limit", "2"], samples)
        self.assertEqual(lines[0], "7 samples")
        self.assertEqual(len(lines), 6)
        self.assertRegex(lines[4], r"42\.9%\s+3\s+3\s+0\s+0\s+\(3 more functions\)")
        self.assertRegex(lines[5], r"28\.6%\s+2\s+0\s+1\s+1\s+28\.6%\s+2\s+\(no Python function\)")

    def test_order(self):
        samples = [sample([py("root"), LOOP, py("leaf")]), sample([py("root"), LOOP, py("leaf")]), sample([py("root")])]
        self.assertEqual(list(rows([], samples)), ["leaf", "root"])
        self.assertEqual(list(rows(["--sort", "total"], samples)), ["root", "leaf"])

    def test_native(self):
        f = py("f")
        samples = [sample([f, LOOP, entry(n)]) for n in ("a", "b", "b", "c")] + [sample([f, LOOP, kernel("k")])]
        lines, _ = run(Top, ["--native=2"], samples)
        text = [" ".join(line.split()) for line in lines[3:]]
        self.assertEqual(
            text,
            ["40.0% 2 - b [libpython3.12.so.1.0]", "20.0% 1 - a [libpython3.12.so.1.0]", "40.0% 2 - (2 more)"],
        )

    def test_by_thread(self):
        samples = [sample([py("f")], tid=42), sample([py("g")], comm="pool", tid=43), sample([py("g")], tid=42)]
        lines, _ = run(Top, ["--by-thread"], samples)
        titles = [line for line in lines if line.startswith("thread")]
        self.assertEqual(
            titles, ["thread python3, tid 42 of process 42: 2 samples", "thread pool, tid 43 of process 42: 1 samples"]
        )

    def test_same_function_name_in_two_files(self):
        samples = [sample([py("f", "/a/x/m.py")]), sample([py("f", "/a/y/m.py")]), sample([py("g", "/a/y/n.py")])]
        lines, _ = run(Top, [], samples)
        self.assertEqual([line.split()[-2:] for line in lines[2:]], [["f", "x/m.py"], ["f", "y/m.py"], ["g", "n.py"]])

    def test_wrong_options(self):
        for arguments in (["--limit", "0"], ["--native=x"], ["--sort", "name"], ["--lim", "3"]):
            with self.assertRaises(SystemExit) as stop, contextlib.redirect_stderr(io.StringIO()):
                run(Top, arguments, [])
            self.assertEqual(stop.exception.code, 2)


SWITCH = "context-switches/period=1/"


class Waits(unittest.TestCase):
    """A file of record --off-cpu: many short waits in one function, a long one in another."""

    def setUp(self):
        self.samples = [sample([py("often")], event=SWITCH, period=1000000) for _ in range(20)]
        self.samples += [sample([py("long")], event=SWITCH, period=3820000000)]

    def test_are_not_counted_by_default(self):
        lines, notes = run(Top, [], self.samples + [sample([py("busy")])])
        self.assertEqual(lines[0], "1 samples")
        self.assertIn("busy", lines[2])
        self.assertEqual(len(lines), 3)
        self.assertIn("context-switches: 21", notes[0])

    def test_alone_are_not_ranked_by_their_number(self):
        lines, notes = run(Top, [], self.samples)
        self.assertEqual(lines, [])
        self.assertIn("--off-cpu", notes[0])

    def test_are_ranked_by_time_with_units(self):
        for arguments in (["--off-cpu"], ["--event", "context-switches"], ["--event", SWITCH, "--period"]):
            lines, notes = run(Top, arguments, [sample([py("busy")])] + self.samples)
            self.assertEqual(lines[0], "3.84 s of waiting")
            self.assertRegex(lines[2], r"99\.5%\s+3\.82 s\s+3\.82 s\s+0\s+0\s+99\.5%\s+3\.82 s\s+long")
            self.assertRegex(lines[3], r"0\.5%\s+20\.0 ms.*often")

    def test_without_times_are_reported(self):
        _, notes = run(Top, ["--off-cpu"], [sample([py("f")], event="context-switches", period=1)])
        self.assertIn("no times", notes[0])


class Layout(unittest.TestCase):
    def test_columns_stay_aligned(self):
        functions = ["f", "\u52a8\u7269.gr\u00f6\u00dfe", "e\u0301", "x" * 200, "two\nlines", "<lambda>"]
        lines, _ = run(Top, [], [sample([py(f, "/s/%d.py" % i)]) for i, f in enumerate(functions)])
        column = width(lines[1][: lines[1].index("file")])
        for line in lines[2:]:
            self.assertEqual(width(line[: line.rindex(" ") + 1]), column, line)

    def test_shorten_keeps_both_ends(self):
        self.assertEqual(shorten("Outer.<locals>.Inner.method", 15), "Outer....method")
        self.assertEqual(shorten("short", 5), "short")
        self.assertLessEqual(width(shorten("\u52a8" * 40, 15)), 15)

    def test_short_paths(self):
        paths = {
            "/usr/lib/python3.13/json/decoder.py": "json/decoder.py",
            "/v/lib/python3.12/site-packages/requests/api.py": "requests/api.py",
            "/srv/shop/cart.py": "shop/cart.py",
            "/srv/bank/cart.py": "bank/cart.py",
            "/srv/main.py": "main.py",
            "<frozen os>": "<frozen os>",
            "": "",
        }
        self.assertEqual(short_paths(paths), paths)
        self.assertEqual(short_paths(["m.py", "/m.py"]), {"m.py": "m.py", "/m.py": "/m.py"})


if __name__ == "__main__":
    unittest.main()
