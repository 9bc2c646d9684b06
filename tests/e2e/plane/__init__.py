"""A real control plane as plain processes, in a network namespace of its own: see `plane.ControlPlane`."""
