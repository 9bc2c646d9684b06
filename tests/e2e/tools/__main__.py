"""Build the programs of a real control plane."""

from tests.e2e.tools import build

build()
