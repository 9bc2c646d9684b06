"""Builders of the provider objects that several functions compose; plain dictionaries, only fields that are set.

Tests validate everything that is composed against the schemas in `schemas/crds`, so a misspelt field cannot pass.
"""

from modelplane.composed.policies import ABANDON, FULL, KEEP, OBSERVE, OBSERVE_DELETE
from modelplane.composed.provider_config import ProviderConfigRef, helm_config, kubernetes_config
from modelplane.composed.release import release
from modelplane.composed.remote import SUCCESSFUL_CREATE, Patch, remote_object
from modelplane.composed.usage import cluster_usage, usage

__all__ = [
    "ABANDON",
    "FULL",
    "KEEP",
    "OBSERVE",
    "OBSERVE_DELETE",
    "SUCCESSFUL_CREATE",
    "Patch",
    "ProviderConfigRef",
    "cluster_usage",
    "helm_config",
    "kubernetes_config",
    "release",
    "remote_object",
    "usage",
]
