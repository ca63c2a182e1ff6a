"""The colours of the page: kinds of boxes look different, also to people who see no red, no green or no blue, and their text can be
read. The figures are those of docs/flamegraph.md."""
import colorsys
import itertools
import math
import os
import re
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/export/page/pane.js")
FOUND = (0, 0, 0)
TEXT = (0, 0, 0)
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1, of
# linear RGB.
SEES_NO = {
    "red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour):
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]


def without(colour, matrix):
    """COLOUR, linear, as somebody sees it who lacks a kind of cones."""
    return [min(max(sum(a * b for a, b in zip(row, colour)), 0), 1) for row in matrix]


def lab(colour):
    """CIELAB of a linear sRGB colour, white D65."""
    rows = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    white = (0.95047, 1.0, 1.08883)
    x, y, z = (sum(a * b for a, b in zip(row, colour)) / w for row, w in zip(rows, white))
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one, other):
    """CIEDE2000 of two CIELAB colours (Sharma, Wu and Dalal, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    apart = h2 - h1
    apart -= 360 * round(apart / 360)
    apart = 0 if c1 * c2 == 0 else apart
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(apart / 2))
    lm, cm = (l1 + l2) / 2, (c1 + c2) / 2
    hm = h1 + h2 if c1 * c2 == 0 else (h1 + apart / 2) % 360
    t = (1 - 0.17 * math.cos(math.radians(hm - 30)) + 0.24 * math.cos(math.radians(2 * hm))
         + 0.32 * math.cos(math.radians(3 * hm + 6)) - 0.20 * math.cos(math.radians(4 * hm - 63)))
    rotation = -2 * math.sqrt(cm ** 7 / (cm ** 7 + 25 ** 7)) * math.sin(math.radians(60 * math.exp(-((hm - 275) / 25) ** 2)))
    sl = 1 + 0.015 * (lm - 50) ** 2 / math.sqrt(20 + (lm - 50) ** 2)
    sc, sh = 1 + 0.045 * cm, 1 + 0.015 * cm * t
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rotation * dc / sc * dh / sh)


def luminance(colour):
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(colour)))


def contrast(one, other):
    """As in the Web Content Accessibility Guidelines 2.1."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def paints():
    """The colours of each kind of boxes, as RGB: their hue and lightness depend on the name."""
    with open(SOURCE) as source:
        text = source.read()
    lists = re.search(r"PAINT = \[(\[.*\])\];", text).group(1) + re.search(r"WAIT_PAINT = (\[.*\]);", text).group(1)
    triples = [[float(number) for number in one.split(",")] for one in re.findall(r"\[([\d., ]+)\]", lists)]
    assert len(triples) == 6, triples
    return [[colorsys.hls_to_rgb((hue + turn) / 360, (lightness + more) / 100, saturation / 100)
             for turn in (0, 3, 6) for more in (-3, 0, 3)] for hue, saturation, lightness in triples]


def least_difference(see):
    kinds = [[lab(see(linear(colour))) for colour in kind] for kind in [*paints(), [FOUND]]]
    return min(difference(*pair) for one, other in itertools.combinations(kinds, 2) for pair in itertools.product(one, other))


class Colours(unittest.TestCase):
    def test_difference_is_that_of_the_published_pairs(self):
        for one, other, expected in [((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
                                     ((50, -1, 2), (50, 0, 0), 2.3669),
                                     ((50, 2.5, 0), (73, 25, -18), 27.1492),
                                     ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
                                     ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082)]:
            self.assertAlmostEqual(difference(one, other), expected, places=4)

    def test_kinds_look_different(self):
        self.assertGreaterEqual(least_difference(lambda colour: colour), 22)

    def test_kinds_look_different_to_colour_blind_people(self):
        for name, matrix in SEES_NO.items():
            with self.subTest(sees_no=name):
                self.assertGreaterEqual(least_difference(lambda colour, matrix=matrix: without(colour, matrix)), 11)

    def test_text_can_be_read(self):
        for colour in itertools.chain(*paints()):
            self.assertGreaterEqual(contrast(colour, TEXT), 5)


if __name__ == "__main__":
    unittest.main()
