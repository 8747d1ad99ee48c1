"""The rung program: python -m rung VERB ..., and the console script of an installed wheel."""

import os
import shutil
import sys

from ._library import HERE


def main() -> None:
    for path in (os.path.join(HERE, "bin", "rung"), os.path.join(HERE, "..", "..", "build", "release", "bin", "rung")):
        if os.access(path, os.X_OK):
            os.execv(path, ["rung"] + sys.argv[1:])
    found = shutil.which("rung")
    if found and os.path.realpath(found) != os.path.realpath(sys.argv[0]):
        os.execv(found, ["rung"] + sys.argv[1:])
    sys.exit("rung: the program is not beside this module and not on PATH: build it with ./dev build")


if __name__ == "__main__":
    main()
