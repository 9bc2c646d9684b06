"""`python -m modelplane_hydrator`."""

from modelplane_hydrator.command import run

run()
