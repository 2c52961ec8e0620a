"""Cabrank: one small binary between gRPC callers and the workers that serve them.

The command cabrank is that binary itself, no Python is involved. This package is for
``python -m cabrank``, and for programs that start it: path() returns where it is.
"""

import os
import pkgutil
import sysconfig
from importlib.metadata import Distribution
from typing import Iterator

__all__ = ["path"]

# What protoc makes of Cabrank's .proto files is below cabrank, too (cabrank.push.v1), in
# folders of the application. Without this they could not be imported.
__path__ = pkgutil.extend_path(__path__, __name__)


def path() -> str:
    """Return the absolute path of the binary.

    FileNotFoundError, of one line, names the places where it is not.
    """
    places = list(dict.fromkeys(_places()))
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise FileNotFoundError("its program is missing at " + " and ".join(places) + "; install the package again")


def _places() -> Iterator[str]:
    """Yield where installers put it: beside this package, or where they have noted."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(packages, "bin", "cabrank")  # pip install --target, which notes another place
    for installed in Distribution.discover(name="cabrank", path=[packages]):
        for file in installed.files or ():
            if file.name == "cabrank" and file.parent.name == "bin":
                yield os.path.abspath(str(installed.locate_file(file)))
    yield os.path.join(sysconfig.get_path("scripts"), "cabrank")  # the notes have been removed
