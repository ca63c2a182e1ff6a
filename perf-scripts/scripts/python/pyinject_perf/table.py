"""Columns that stay columns, whatever the names in them are."""

import unicodedata

from .frames import base_name

_ELLIPSIS = "..."
# Below these folders a path says what it has to say: json/decoder.py, requests/api.py.
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")


def width(text):
    """Columns a terminal needs: a Python identifier may be Chinese, or have combining marks."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def shorten(text, limit):
    """Cut in the middle: both ends of a qualified name say something."""
    if width(text) <= limit:
        return text
    head = tail = ""
    front, back = list(text), list(text)
    while True:
        grown = head + front[len(head)]
        if width(grown) + len(_ELLIPSIS) + width(tail) > limit:
            return head + _ELLIPSIS + tail
        head = grown
        grown = back[-len(tail) - 1] + tail
        if width(head) + len(_ELLIPSIS) + width(grown) > limit:
            return head + _ELLIPSIS + tail
        tail = grown


def _library_path(parts):
    for i in range(len(parts) - 2, -1, -1):
        if parts[i] in _LIBRARY_FOLDERS:
            return parts[i + 1 :]
        if parts[i].startswith("python3.") and i > 0 and parts[i - 1].startswith("lib"):
            return parts[i + 1 :]
    return None


def short_paths(paths):
    """Path -> short path: as many trailing components as it takes to tell the files of the table apart."""
    parts = {path: path.split("/") for path in paths}
    sizes = {}
    for path, split in parts.items():
        inside = _library_path(split)
        sizes[path] = len(inside) if inside else 1
    while True:
        short = {path: "/".join(split[-sizes[path] :]) for path, split in parts.items()}
        users = {}
        for path, name in short.items():
            users.setdefault(name, []).append(path)
        clashing = [p for same in users.values() if len(same) > 1 for p in same if sizes[p] < len(parts[p])]
        if not clashing:
            return short
        for path in clashing:
            sizes[path] += 1


def layout(header, rows):
    """Rows of strings to lines. A column is aligned to the right if its header begins with a blank; the last is free."""
    table = [header] + rows
    widths = [max(width(row[i].lstrip() if row is header else row[i]) for row in table) for i in range(len(header))]
    for row in table:
        cells = []
        for i, cell in enumerate(row):
            if row is header:
                cell = cell.lstrip()
            pad = " " * (widths[i] - width(cell))
            cells.append(pad + cell if header[i].startswith(" ") else cell + pad)
        yield "  ".join(cells).rstrip()


def file_label(dso):
    return base_name(dso).strip("[]") or "unknown"
