"""A control plane for a person: `make control-plane`. Prints how to reach it; ends when interrupted."""

import signal
import sys
import time

from tests.e2e import tools
from tests.e2e.plane import namespace


def main() -> int:
    """Bring it up and stay."""
    namespace.enter()
    from tests.e2e import fleet
    from tests.e2e.plane.plane import LOGS, ControlPlane

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("starting; about a minute ...", flush=True)
    try:
        with ControlPlane() as plane:
            fleet.prepare(plane)
            print(f"ready after {time.monotonic() - plane.started:.0f} s; logs in {LOGS}\n")
            print(f"enter it:  {namespace.doorway()} bash")
            for cluster in (plane.control, *plane.workloads):
                print(f"  export KUBECONFIG={cluster.kubeconfig}   # {cluster.name}")
            print(f"  kubectl is {tools.path('kubectl')}\n")
            print("examples/getting-started finds its machines and Secrets here. Ctrl-C ends it.", flush=True)
            told: set[str] = set()
            while True:
                time.sleep(1)
                for process in plane.processes.dead():
                    if process.name not in told:
                        print(f"{process.name} ended:\n{process.tail()}", flush=True)
                    told.add(process.name)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
