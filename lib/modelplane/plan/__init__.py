"""What a fleet would become: manifests in, a report out, and nothing touched."""
