"""Value types of Kubernetes, read as upstream reads them; standard library only."""
