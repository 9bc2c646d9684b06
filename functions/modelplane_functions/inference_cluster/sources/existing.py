"""Source Existing: a cluster of the user's, reached by a kubeconfig."""

from modelplane_functions.inference_cluster.sources.source import Source

EXISTING = Source(name="Existing", block="existing", teardown="Uninstall")
