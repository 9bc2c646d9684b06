"""Paths and weights: what every hop of a request agrees on; standard library only."""
