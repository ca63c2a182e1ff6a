"""Uses a page of perf-pyinject flamegraph as a person would: python3 exercise_page.py PAGE FUNCTION [DIFF]

PAGE has samples of the CPU and waits; FUNCTION is a Python function in it. DIFF is a page that compares two recordings.
With PICTURE in the environment, that file gets a screenshot. Status: 0 if all went well, 77 without a browser."""

import os
import sys

import browser

READY = "document.documentElement.dataset.ready === 'true'"
FIND = """(() => {
  const pane = page.panes[0];
  const node = pane.tree.function.findIndex((id, node) => id >= 0 && pane.tree.name(node) === %r);
  return node < 0 ? null : {node, ...pane.where(node)};
})()"""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def status(page):
    return page.evaluate("document.getElementById('status').textContent")


def heading(page):
    return page.evaluate("page.panes[0].heading.textContent")


def total(page):
    return page.evaluate("page.panes[0].tree.total[0]")


def hover_and_zoom(page, function):
    place = page.evaluate(FIND % function)
    check(place and "x" in place, "%s is not drawn" % function)
    page.move(place["x"], place["y"])
    tip = page.evaluate("document.getElementById('tooltip').textContent")
    parts = ("total:", "self:", "of the total: Python ")
    check(tip.startswith(function) and all(part in tip for part in parts), "the tooltip says: " + tip)
    check(tip.count("\n") == 5, "the tooltip lacks the line of source: " + tip)
    check(" s · Python " in heading(page), "the heading says: " + heading(page))
    page.click(place["x"], place["y"])
    check(page.evaluate("page.panes[0].zoomed") == place["node"], "a click does not zoom")
    wide = page.evaluate(FIND % function)["width"]
    check(wide > 0.95 * page.evaluate("page.panes[0].width"), "the zoomed function is %s pixels wide" % wide)
    page.press("Escape")
    check(page.evaluate("page.panes[0].zoomed") == 0, "Esc does not zoom out")


def search(page, function):
    page.press("/")
    page.type("^%s$" % function)
    check("matched: " in heading(page) and "matched: 0.0 %" not in heading(page), "search: " + heading(page))
    page.press("Escape")
    check("matched" not in heading(page), "Esc does not end the search")


def toggle(page):
    kinds = """[...new Set(page.panes[0].tree.function.map((id, node) => page.panes[0].tree.kind(node)))].sort()"""
    before = total(page)
    page.press("3")
    check(set(page.evaluate(kinds)) <= {0, 3, 4}, "Python mode shows other functions")
    check(total(page) == before, "Python mode loses samples")
    page.press("4")
    check(0 not in page.evaluate(kinds), "native mode shows Python functions")
    page.press("1")
    shown = {}
    for grouping in ("groups", "threads"):
        page.press("t")
        shown[grouping] = page.evaluate("page.panes[0].tree.children(0).map(node => page.panes[0].tree.name(node))")
        check(page.evaluate("page.settings.grouping") == grouping, "t does not show " + grouping)
        check(total(page) == before, grouping + " lose samples")
    check(len(shown["groups"]) < len(shown["threads"]), "by group and by thread: %s" % shown)
    check(any(name.endswith(" threads)") for name in shown["groups"]), "groups: %s" % shown["groups"])
    page.press("t")
    page.press("i")
    check(page.evaluate("page.settings.direction") == "icicle", "i does not turn the graph")
    page.press("i")
    page.press("d")
    page.press("d")


def show_the_program(page, function):
    """Without the interpreter, one key away from all of it."""
    boxes = """(() => {
      const {tree} = page.panes[0];
      return tree.function.map((id, node) => node).filter(node => tree.name(node) === %r)
          .map(node => [tree.parent[node], tree.label(node)]);
    })()""" % function
    names = "page.panes[0].tree.function.map((_, node) => page.panes[0].tree.name(node))"
    plumbing = ("[python3", "_PyEval", "[GIL")
    before = total(page)
    shown = page.evaluate(boxes)
    check(shown and all(label.startswith(function + " services.py:") for _, label in shown), "boxes: %s" % shown)
    check(not [name for name in page.evaluate(names) if name.startswith(plumbing)], "it shows the interpreter")
    page.press("2")
    check([name for name in page.evaluate(names) if name.startswith(plumbing)], "mixed hides the interpreter")
    check(total(page) == before, "mixed has %s samples, the program %s" % (total(page), before))
    check(len(page.evaluate(boxes)) >= len(shown), "the program has more boxes of one function than mixed")
    page.press("1")


def use_the_table(page, function):
    rows = """[...document.querySelectorAll('#hot tbody tr')].map(row => [...row.children].map(one => one.textContent))"""
    head = [*page.evaluate("[...document.querySelectorAll('#hot th')].map(one => one.textContent)")]
    check(head[:3] == ["Self %", "Total %", "Python"] and head[-2:] == ["Wait s", "Function"], "columns: %s" % head)
    shown = page.evaluate(rows)
    check(shown[0][-1].startswith(function), "the first row is %s" % shown[0])
    all_self = sum(float(row[0] or 0) for row in shown)
    check(95 < all_self < 101, "all rows together have %s %%" % all_self)  # rounded, each one
    page.evaluate("document.querySelector('#hot th.total button').click()")
    totals = [float(row[1] or 0) for row in page.evaluate(rows)]
    check(totals == sorted(totals, reverse=True), "not sorted: %s" % totals)
    page.evaluate("document.querySelector('#hot th.name button').click()")
    sorted_by = page.evaluate("document.querySelector('#hot th[aria-sort]').textContent")
    check(sorted_by == "Function", "sorted by " + sorted_by)
    page.evaluate("[...document.querySelectorAll('#hot tbody button')].find(one => one.textContent.startsWith(%r)).click()"
                  % function)
    check(page.evaluate("page.panes[0].tree.name(page.panes[0].zoomed)") == function, "a row does not zoom")
    page.press("Escape")
    page.press("h")
    check(page.evaluate("document.getElementById('hot').hidden"), "h does not hide the table")
    page.press("h")


def read_the_source(page, function):
    page.evaluate("page.panes[0].select(page.panes[0].tree.function.findIndex("
                  "(id, node) => page.panes[0].tree.name(node) === %r))" % function)
    page.press("s")
    check(page.evaluate("document.getElementById('hot').hidden"), "the table and the source are both there")
    file = page.evaluate("document.getElementById('file').selectedOptions[0].text")
    check(file.endswith("/services.py"), "the source is " + file)
    lines = page.evaluate("""[...document.querySelectorAll('#source tbody tr')].map(
        row => [...row.children].map(cell => cell.textContent))""")
    hot = max(lines, key=lambda line: float(line[0] or 0))
    first = next(int(line[3]) for line in lines if line[4].startswith("def %s(" % function))
    check(first < int(hot[3]) < first + 20 and float(hot[0]) > 5, "the hot line is %s" % hot)
    check(all(float(line[1]) >= float(line[0]) for line in lines if line[0]), "self is more than total")
    page.press("h")
    check(not page.evaluate("document.getElementById('hot').hidden"), "h does not go back to the table")
    page.press("Escape")


def walk_by_keys(page):
    selected = "page.panes[0].selected"
    page.press("ArrowUp")
    first = page.evaluate(selected)
    page.press("ArrowUp")
    check(page.evaluate("page.panes[0].tree.parent[%s]" % selected) == first, "arrow keys do not move")
    page.press("Enter")
    check(page.evaluate("page.panes[0].zoomed") > 0, "Enter does not zoom")
    page.press("Backspace")
    page.press("Escape")


def choose_seconds(page):
    before = total(page)
    box = page.evaluate("(() => { const b = document.getElementById('heatmap').getBoundingClientRect();"
                        " return [b.left, b.top, b.width, b.height]; })()")
    columns = page.evaluate("page.heatMap.columns")
    check(columns >= 2, "no heat map")
    page.click(box[0] + box[2] / columns / 2, box[1] + box[3] / 2)
    check(page.evaluate("page.settings.to - page.settings.from") == 50, "a click does not choose a second")
    first = total(page)
    check(0 < first < before, "a second has %s of %s samples" % (first, before))
    page.drag((box[0] + 1, box[1] + 1), (box[0] + box[2] * 0.6, box[1] + box[3] - 1))
    check(total(page) > first, "a range has %s samples, a second %s" % (total(page), first))
    page.press("Escape")
    check(total(page) == before, "Esc does not end the choice of a time")


def side_by_side(page):
    page.evaluate("document.querySelector('#event [data-value=all]').click()")
    units = page.evaluate("page.panes.map(pane => pane.tree.unit).sort()")
    check(units == ["ns", "samples"], "side by side: %s" % units)
    page.evaluate("document.querySelector('#event button').click()")


def compare(page):
    check(page.evaluate("document.getElementById('comparison').hidden") is False, "no choice of the comparison")
    growth = page.evaluate("page.panes[0].tree.function.map((_, node) => page.panes[0].tree.growth(node))")
    check(any(one > 0.01 for one in growth) and any(one < -0.01 for one in growth), "nothing has changed")
    check("before: " in status(page), status(page))
    page.evaluate("document.querySelector('#comparison [data-value=absolute]').click()")
    check(page.evaluate("page.settings.comparison") == "absolute", "absolute cannot be chosen")
    elided = page.evaluate("document.querySelector('#elided summary').textContent")
    check("only in the older recording" in elided, elided)


def main(file, function, diff=None):
    program = browser.find()
    if program is None:
        print("no Chromium")
        return 77
    with browser.Browser(program) as page:
        page.open(file, READY)
        for step in (hover_and_zoom, search, show_the_program, use_the_table, read_the_source):
            step(page, function)
        for step in (toggle, walk_by_keys, choose_seconds, side_by_side):
            step(page)
        if diff:
            page.open(diff, READY)
            compare(page)
        if "PICTURE" in os.environ:
            page.screenshot(os.environ["PICTURE"])
        check(not page.errors, page.errors)
        outside = [url for url in page.requests if not url.startswith("file:")]
        check(not outside, "requests: %s" % outside)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
