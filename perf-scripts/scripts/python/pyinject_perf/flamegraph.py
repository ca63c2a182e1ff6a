"""A flame graph as one SVG file: the stacks of pyinject-collapsed, with tooltips, zoom by a click and search."""

from html import escape

from .collapse import Collapse
from .samples import counts_waits

_WIDTH = 1200
_ROW = 16
_TOP = 40
_LETTER = 6.6  # of the 11 px monospace font
_MOST_DEPTH = 1000

_SCRIPT = """
var root = document.documentElement, all = [].slice.call(document.querySelectorAll('g.f'));
function set(g, x, w) {
  var r = g.querySelector('rect'), t = g.querySelector('text'), n = Math.floor((w - 4) / %(letter)s), s = g.dataset.n;
  g.style.display = w < 0.1 ? 'none' : '';
  r.setAttribute('x', x); r.setAttribute('width', Math.max(w, 0));
  t.setAttribute('x', x + 2); t.textContent = n < 3 ? '' : n < s.length ? s.slice(0, n - 2) + '..' : s;
}
function zoom(to) {
  var begin = +to.dataset.b, end = +to.dataset.e, depth = +to.dataset.d;
  all.forEach(function (g) {
    var b = +g.dataset.b, e = +g.dataset.e, above = +g.dataset.d < depth && b <= begin && e >= end;
    var x = above ? 0 : (b - begin) / (end - begin) * %(width)d, w = above ? %(width)d : (e - b) / (end - begin) * %(width)d;
    set(g, x, b >= begin && e <= end || above ? w : 0);
    g.style.opacity = above ? 0.5 : 1;
  });
}
function search(text) {
  var found, sum = 0, upTo = -1;
  try { found = text ? new RegExp(text) : null; } catch (error) { return; }
  all.forEach(function (g) {
    var hit = found && found.test(g.dataset.n);
    g.querySelector('rect').style.fill = hit ? '#e6e' : '';
    if (hit && +g.dataset.b >= upTo) { sum += g.dataset.e - g.dataset.b; upTo = +g.dataset.e; }
  });
  document.getElementById('found').textContent = found ?
    'matched: ' + (100 * sum / all[0].dataset.e).toFixed(1) + '%%' : '';
}
root.addEventListener('click', function (event) {
  var g = event.target.closest('g.f');
  if (g) { zoom(g); }
});
root.addEventListener('keydown', function (event) {
  if (event.key === 'Escape') { zoom(all[0]); search(''); }
  if (event.key === '/' || event.key === 'f' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault(); search(prompt('regular expression') || '');
  }
});
document.getElementById('search').addEventListener('click', function () { search(prompt('regular expression') || ''); });
"""

_STYLE = """
text { font: 11px monospace; fill: #000; pointer-events: none }
#search, #found { font: 12px sans-serif } #search { pointer-events: auto; cursor: pointer; text-decoration: underline }
rect { stroke: #fff; stroke-width: .5 } g.f { cursor: pointer } g.f:hover rect { stroke: #000 }
.python { fill: #7aa6da } .native { fill: #e3c35c } .kernel { fill: #de7b6a } .mark { fill: #bbb } .root { fill: #9aba7c }
"""


class Node:
    __slots__ = ("name", "total", "called")

    def __init__(self, name):
        self.name = name
        self.total = 0
        self.called = {}


def kind_of(name, depth):
    if depth <= 1:
        return "root"
    if name.startswith("py::"):
        return "python"
    if name.endswith("_[k]"):
        return "kernel"
    return "mark" if name.startswith(("[GIL", "[waiting", "[task ", "[preempted")) else "native"


class Flamegraph(Collapse):
    NAME = "pyinject-flamegraph"

    def __init__(self, options):
        super().__init__(options)
        self._title = options.title
        self._output = options.output
        self._least = options.least
        self._unit = "ns" if counts_waits(options) else "events" if options.period else "samples"

    @classmethod
    def parser(cls):
        parser = super().parser()
        parser.description = "A flame graph as SVG, for a browser."
        parser.add_argument("--title", default="Flame graph", help="the heading")
        parser.add_argument("--output", metavar="FILE", help="write to FILE (default: stdout)")
        parser.add_argument(
            "--least", type=float, default=0.1, metavar="PERCENT", help="omit narrower functions (default: 0.1)"
        )
        return parser

    def tree(self):
        """The root of the call tree; functions below _MOST_DEPTH count for their caller."""
        root = Node("all")
        for stack, count in sorted(self._stacks.items()):
            node = root
            node.total += count
            for name in stack.split(";")[:_MOST_DEPTH]:
                node = node.called.setdefault(name, Node(name))
                node.total += count
        return root

    def lines(self):
        text = self.svg()
        if self._output is None:
            return text
        with open(self._output, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(line + "\n" for line in text)
        return []

    def svg(self):
        root = self.tree()
        shown, deepest, stack = [], 0, [(root, 0, 0)]
        while stack:
            node, depth, begin = stack.pop()
            if node.total * 100 < self._least * root.total or not node.total:
                continue
            deepest = max(deepest, depth)
            shown.append((node, depth, begin))
            for called in node.called.values():
                stack.append((called, depth + 1, begin))
                begin += called.total
        height = _TOP + (deepest + 1) * _ROW + 10
        yield '<?xml version="1.0" encoding="utf-8"?>'
        yield '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" tabindex="0">' % (
            _WIDTH, height, _WIDTH, height,
        )  # fmt: skip
        yield "<style>%s</style>" % _STYLE
        yield '<rect width="100%" height="100%" fill="#fff"/>'
        yield '<text x="%d" y="24" text-anchor="middle" style="font: 17px sans-serif">%s</text>' % (
            _WIDTH / 2, escape(printable(self._title)),
        )  # fmt: skip
        yield '<text id="search" x="10" y="24">Search</text><text id="found" x="%d" y="24"></text>' % (_WIDTH - 120)
        for node, depth, begin in sorted(shown, key=lambda one: (one[1], one[2])):
            yield self._frame(node, depth, begin, root.total)
        script = _SCRIPT % {"letter": _LETTER, "width": _WIDTH}
        yield "<script><![CDATA[%s]]></script>" % script
        yield "</svg>"

    def _frame(self, node, depth, begin, everything):
        x, width = _WIDTH * begin / everything, _WIDTH * node.total / everything
        y = _TOP + depth * _ROW
        name = printable(node.name)
        fits = int((width - 4) / _LETTER)
        short = "" if fits < 3 else name if fits >= len(name) else name[: fits - 2] + ".."
        tip = "%s: %d %s, %.2f%%" % (name, node.total, self._unit, 100 * node.total / everything)
        return (
            '<g class="f" data-n="%s" data-b="%d" data-e="%d" data-d="%d"><title>%s</title>'
            '<rect class="%s" x="%.2f" y="%d" width="%.2f" height="%d"/><text x="%.2f" y="%d">%s</text></g>'
        ) % (
            escape(name), begin, begin + node.total, depth, escape(tip), kind_of(node.name, depth),
            x, y, width, _ROW - 1, x + 2, y + 12, escape(short),
        )  # fmt: skip


def printable(text):
    """XML can hold neither control characters nor halves of surrogate pairs."""
    return "".join(c if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff" else "?" for c in text)
