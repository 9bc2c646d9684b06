"""The Helm releases of the stack: one table of charts and pins, and the values that are ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.composed.release import Chart
from modelplane_functions.serving_stack.inputs import Stack

Values = Mapping[str, Any]

ENVOY_GATEWAY_NAMESPACE = "envoy-gateway-system"
AI_GATEWAY_NAMESPACE = "envoy-ai-gateway-system"
DRA_NAMESPACE = "dra-driver-nvidia-gpu"

_ENVOY = "oci://docker.io/envoyproxy"
_PROXY_METRICS_PORT = 19001


def _cert_manager(_: Stack) -> Values:
    # keep: a certificate that a user made must outlive our release.
    return {"crds": {"enabled": True, "keep": True}, "replicaCount": 2}


def _envoy_gateway(_: Stack) -> Values:
    every = {"includeAll": True}
    return {
        "config": {
            "envoyGateway": {
                "extensionApis": {"enableBackend": True},
                "extensionManager": {
                    "hooks": {
                        "xdsTranslator": {
                            "translation": {"listener": every, "route": every, "cluster": every, "secret": every},
                            "post": ["Translation", "Cluster", "Route"],
                        }
                    },
                    "service": {
                        "fqdn": {
                            "hostname": f"ai-gateway-controller.{AI_GATEWAY_NAMESPACE}.svc.cluster.local",
                            "port": 1063,
                        }
                    },
                    "backendResources": [
                        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "version": "v1"}
                    ],
                },
            }
        },
        "deployment": {"replicas": 2},
        "podDisruptionBudget": {"minAvailable": 1},
    }


def _ai_gateway(_: Stack) -> Values:
    # The chart's own webhook certificate expires after a year, and upgrades do not renew it.
    return {
        "controller": {
            "replicaCount": 2,
            "podDisruptionBudget": {"enabled": True},
            "mutatingWebhook": {"certManager": {"enable": True}},
        }
    }


def _prometheus(_: Stack) -> Values:
    off = {"enabled": False}
    return {
        "fullnameOverride": "prometheus",
        "grafana": off,
        "alertmanager": off,
        "kubeEtcd": off,
        "kubeControllerManager": off,
        "kubeScheduler": off,
        "kubeProxy": off,
        "prometheus": {
            "prometheusSpec": {
                "retention": "7d",
                "podMonitorSelectorNilUsesHelmValues": False,
                "serviceMonitorSelectorNilUsesHelmValues": False,
                "podMonitorNamespaceSelector": {},
                "additionalScrapeConfigs": [_proxies()],
            }
        },
    }


def _proxies() -> Values:
    return {
        "job_name": "envoy-gateway-proxy",
        "metrics_path": "/stats/prometheus",
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [ENVOY_GATEWAY_NAMESPACE]}}],
        "relabel_configs": [
            {
                "source_labels": ["__meta_kubernetes_pod_label_app_kubernetes_io_component"],
                "action": "keep",
                "regex": "proxy",
            },
            {
                "source_labels": ["__meta_kubernetes_pod_ip"],
                "action": "replace",
                "regex": "(.+)",
                "replacement": f"$1:{_PROXY_METRICS_PORT}",
                "target_label": "__address__",
            },
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
        ],
    }


def _leader_worker_set(_: Stack) -> Values:
    return {"replicaCount": 2}


def _node_feature_discovery(_: Stack) -> Values:
    return {
        "worker": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]},
    }


def _dra_driver(stack: Stack) -> Values:
    values: dict[str, Any] = {
        "gpuResourcesEnabledOverride": True,
        "resources": {"computeDomains": {"enabled": False}},
    }
    if stack.driver_root != "/":
        values["nvidiaDriverRoot"] = stack.driver_root
    return values


def _none(_: Stack) -> Values:
    return {}


@dataclass(frozen=True)
class Install:
    """One release: `key` in the composition, the component it belongs to, the chart, and where it goes.

    `wait` makes the release Ready only once its workloads run; DaemonSets do not wait, they may have no node yet.
    """

    key: str
    component: str
    chart: Chart
    namespace: str
    values: Callable[[Stack], Values] = _none
    wait: bool = False

    def pinned(self, stack: Stack) -> Chart:
        """The chart at the version that the spec asks for, or at the tested one."""
        version = stack.versions.get(self.component)
        return Chart(self.chart.name, self.chart.repository, version) if version else self.chart


INSTALLS: Mapping[str, Install] = {
    install.key: install
    for install in (
        Install(
            "cert-manager",
            "certManager",
            Chart("cert-manager", "https://charts.jetstack.io", "v1.21.1"),
            "cert-manager",
            _cert_manager,
            wait=True,
        ),
        Install(
            "prometheus",
            "prometheus",
            Chart("kube-prometheus-stack", "https://prometheus-community.github.io/helm-charts", "88.5.3"),
            "monitoring",
            _prometheus,
        ),
        Install(
            "leader-worker-set",
            "leaderWorkerSet",
            Chart("lws", "oci://registry.k8s.io/lws/charts", "0.10.0"),
            "lws-system",
            _leader_worker_set,
            wait=True,
        ),
        Install(
            "node-feature-discovery",
            "nodeFeatureDiscovery",
            Chart("node-feature-discovery", "oci://registry.k8s.io/nfd/charts", "0.18.3"),
            "node-feature-discovery",
            _node_feature_discovery,
        ),
        Install(
            "ai-gateway-crds",
            "aiGateway",
            Chart("ai-gateway-crds-helm", _ENVOY, "v1.1.0"),
            AI_GATEWAY_NAMESPACE,
        ),
        Install(
            # The version that AI Gateway v1.1.0 is built and tested with.
            "envoy-gateway",
            "envoyGateway",
            Chart("gateway-helm", _ENVOY, "v1.8.1"),
            ENVOY_GATEWAY_NAMESPACE,
            _envoy_gateway,
            wait=True,
        ),
        Install(
            "ai-gateway",
            "aiGateway",
            Chart("ai-gateway-helm", _ENVOY, "v1.1.0"),
            AI_GATEWAY_NAMESPACE,
            _ai_gateway,
            wait=True,
        ),
        Install(
            "dra-driver",
            "nvidiaDraDriver",
            Chart("dra-driver-nvidia-gpu", "oci://registry.k8s.io/dra-driver-nvidia/charts", "0.4.1"),
            DRA_NAMESPACE,
            _dra_driver,
        ),
    )
}
"""Every release. Helm never upgrades what a chart holds in crds/: a new pin of envoy-gateway, leader-worker-set,
prometheus or dra-driver needs a word about its definitions in the release notes."""
