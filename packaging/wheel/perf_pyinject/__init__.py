"""perf-pyinject: profiles running CPython processes. The program is not written in Python; find_program() says where it is."""
import os
import sys
import sysconfig

_NAME = "perf-pyinject"


def find_program():
    """The path of the program that this package installed. FileNotFoundError: it has been removed."""
    package = os.path.dirname(os.path.realpath(__file__))
    site = os.path.dirname(package)
    directories = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.path.join(site, "bin"),  # pip install --target
        os.path.dirname(sys.executable),
    ]
    # A wheel that was unpacked, rather than installed.
    directories += [os.path.join(site, name, "scripts") for name in sorted(os.listdir(site))
                    if name.startswith("perf_pyinject-") and name.endswith(".data")]
    for directory in directories:
        path = os.path.join(directory, _NAME)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"{_NAME} is in none of {', '.join(directories)}: pip install --force-reinstall {_NAME}")
