"""Run one stand-in."""

import importlib
import sys

if __name__ == "__main__":
    importlib.import_module("tests.e2e.standins." + sys.argv[1].replace("-", "_")).main(*sys.argv[2:])
