"""A real control plane without Docker: see README.md."""
