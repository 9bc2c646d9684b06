"""Stand-ins: programs that play what cannot run here. Each says in its first line what it plays.

Run one as `python -m tests.e2e.standins NAME ARGUMENT...`.
"""
