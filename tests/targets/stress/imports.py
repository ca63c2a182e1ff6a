import importlib

names = (
    "argparse ast bdb calendar cmd code codeop configparser copy csv dataclasses difflib dis fractions gettext hashlib "
    "heapq html.parser inspect ipaddress json json.decoder json.encoder mimetypes opcode optparse pprint queue random "
    "shlex statistics string tempfile textwrap tokenize typing uuid xml.etree.ElementTree zipfile"
).split()
names_in_turn = itertools.cycle(names)


def work():
    name = next(names_in_turn)
    sys.modules.pop(name, None)
    module = importlib.import_module(name)
    expect(module.__name__, name)
    expect(len(vars(module)) > 5, True)
    if name == "json":
        expect(module.loads("[1, 2]"), [1, 2])
    if name == "fractions":
        expect(str(module.Fraction(3, 6)), "1/2")


torture(work, [calls])
