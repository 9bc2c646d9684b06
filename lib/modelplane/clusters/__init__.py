"""What the functions that make clusters share, whatever the cloud.

A cloud adds what it has: its own spec and pools (`spec.ClusterSpec`, `spec.Pool`), its own resources on a `desk.Desk`,
and the keys that its parts are made of for `status.write`.
"""
