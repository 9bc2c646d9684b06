"""Which Google Cloud project the cluster is in.

The provider builds the identities of networks, clusters and node pools from the project of its own configuration, so
the two must agree before anything is made.
"""

from dataclasses import dataclass

from modelplane.clusters.spec import Refusal
from modelplane.kube.objects import text
from modelplane.xfn import Request, Response
from modelplane_functions.gke_cluster.inputs import Spec

REQUIREMENT = "gcp-provider-config"
CONFIG = "gcp.m.upbound.io/v1beta1"


@dataclass(frozen=True)
class Project:
    """A project, or why there is none yet. `note` is what is worth knowing of one in use."""

    id: str = ""
    refusal: Refusal | None = None
    note: str = ""


def require(rsp: Response, spec: Spec) -> None:
    """Ask for the provider configuration."""
    namespace = spec.namespace if spec.config.kind == "ProviderConfig" else None
    rsp.require(REQUIREMENT, CONFIG, spec.config.kind, match_name=spec.config.name, namespace=namespace)


def live(req: Request) -> str:
    """The project of what exists, the network before all else; empty where nothing does."""
    for key in ("network", *req.observed):
        found = req.observed.get(key)
        project = found.text("spec", "forProvider", "project") if found is not None else ""
        if project:
            return project
    return ""


def find(req: Request, spec: Spec) -> Project:
    """Find the project: the spec's, else the one things are in, else the provider configuration's."""
    named = f"{spec.config.kind} {spec.config.name}"
    config = req.required_one(REQUIREMENT)
    configured = text(config.raw, "spec", "projectID") if config is not None else ""
    project = spec.project or live(req) or configured
    if not project:
        message = f"waiting for a project: set spec.project, or spec.projectID of {named} ({CONFIG})"
        return Project(refusal=Refusal("WaitingForProject", message))
    if not req.observed and not req.answered(REQUIREMENT):
        return Project(refusal=Refusal("WaitingForProject", f"looking up {named} ({CONFIG})"))
    if configured and configured != project:
        message = (
            f"spec.projectID of {named} is {configured}, but the cluster is for project {project}: the provider would "
            f"look for it in the wrong project; name a configuration for {project} in spec.credentials"
        )
        if not req.observed:
            return Project(refusal=Refusal("ProjectMismatch", message))
        return Project(project, note=f"{message}.")
    return Project(project)
