"""Source GKE: a cluster that a GKECluster makes."""

from modelplane.kube.objects import Object, integer, text
from modelplane_functions.inference_cluster.sources import versions
from modelplane_functions.inference_cluster.sources.source import Child, NodePool, Source, Surroundings


def check(pool: NodePool, around: Surroundings) -> str:
    """Say what GKECluster or Google Cloud would refuse in a pool."""
    region = text(around.block, "region")
    wrong = versions.check("gke.kubernetesVersion", text(around.block, "kubernetesVersion"))
    if wrong:
        return wrong
    if not pool.zones:
        return "zones has no zone; name at least one where the machine type is offered"
    foreign = [z for z in pool.zones if region and not z.startswith(f"{region}-")]
    if foreign:
        return f"zones {', '.join(foreign)} are not in region {region}"
    if pool.capacity_block:
        return "capacityBlock needs source EKS"
    if pool.fabric != "None":
        return f"fabric {pool.fabric} needs source EKS"
    zones = len(pool.zones)
    if pool.maximum is None and pool.count % zones:
        below, above = pool.count // zones * zones, -(-pool.count // zones) * zones
        counts = " or ".join(str(n) for n in (below, above) if n)
        return (
            f"nodeCount {pool.count} cannot be spread evenly over zones {', '.join(pool.zones)} on GKE; use {counts}, "
            "one zone, or set maxNodeCount"
        )
    return ""


def entry(pool: NodePool) -> Object:
    """Map a pool to an entry of GKECluster `spec.nodePools`."""
    gpu: Object = {"acceleratorType": text(pool.recipe, "accelerator", "type")}
    count = integer(pool.recipe, "accelerator", "count")
    if count is not None:
        gpu["acceleratorCount"] = count
    built: Object = {
        "name": pool.name,
        "role": "GPU",
        "machineType": text(pool.recipe, "machineType"),
        **pool.sizes(floor=0),
        "zones": list(pool.zones),
        "gpu": gpu,
    }
    disk = integer(pool.recipe, "diskSizeGb")
    if disk is not None:
        built["diskSizeGb"] = disk
    return built


GKE = Source(
    name="GKE",
    block="gke",
    teardown="Orphan",
    driver_root="/home/kubernetes/bin/nvidia",
    child=Child(
        key="gke-cluster",
        kind="GKECluster",
        usage="usage-gke-by-backend",
        fields=("project", "region", "kubernetesVersion", "credentials", "networking", "endpoint"),
        immutable=(
            ("project",),
            ("region",),
            ("credentials", "type"),
            ("credentials", "name"),
            ("networking", "podCidr"),
            ("networking", "serviceCidr"),
            ("networking", "nodeCidr"),
        ),
        append_only=(),
        entry=entry,
        check=check,
        identity="GoogleApplicationCredentials",
    ),
)
