"""The workload of an engine: what runs its pods."""
