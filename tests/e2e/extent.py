"""How much of the suite runs: a sample of each kill, or twenty and whatever takes long."""

import os

ROUNDS = int(os.environ.get("E2E_CHAOS_ROUNDS", "1"))
"""How often each program is killed; `make e2e-chaos` asks for twenty."""

LONG = ROUNDS > 1
"""Whether waits that end by themselves within a minute are waited for, so that what users wait for is measured."""
