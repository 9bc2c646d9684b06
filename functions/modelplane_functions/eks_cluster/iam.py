"""Roles: of the control plane, of the nodes, and of the two controllers that act in AWS."""

import json

from modelplane.composed.managed import matching
from modelplane.kube.objects import Object
from modelplane_functions.eks_cluster.desk import IAM, Desk, partition

NODE_ATTACHMENTS = ("iam-attach-node-worker", "iam-attach-node-cni", "iam-attach-node-ecr")

_ROLES = {
    "cluster": ("eks.amazonaws.com", ("sts:AssumeRole",)),
    "node": ("ec2.amazonaws.com", ("sts:AssumeRole",)),
    "efs-csi": ("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession")),
    "cluster-autoscaler": ("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession")),
}
"""Role: the service that assumes it, and how."""

_ATTACHMENTS = {
    "iam-attach-cluster-policy": ("cluster", "AmazonEKSClusterPolicy"),
    "iam-attach-node-worker": ("node", "AmazonEKSWorkerNodePolicy"),
    "iam-attach-node-cni": ("node", "AmazonEKS_CNI_Policy"),
    "iam-attach-node-ecr": ("node", "AmazonEC2ContainerRegistryReadOnly"),
    "iam-attach-efs-csi": ("efs-csi", "service-role/AmazonEFSCSIDriverPolicy"),
}
"""Composition key: the role, and the policy that AWS manages."""

_READ = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "autoscaling:DescribeTags",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:GetInstanceTypesFromInstanceRequirements",
    "eks:DescribeNodegroup",
)
_WRITE = ("autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup")


def _document(*statements: Object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, separators=(",", ":"))


def _role(name: str) -> dict[str, str]:
    return {"modelplane.ai/iam-role": name}


def compose(desk: Desk) -> None:
    """Compose roles, policies and attachments."""
    for role, (service, actions) in _ROLES.items():
        key = f"iam-role-{role}"
        trust = _document({"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)})
        desk.add(key, desk.aws(key, IAM, "Role", {"assumeRolePolicy": trust}, labels=_role(role), tags={}))
    arn = f"arn:{partition(desk.spec.region)}:iam::aws:policy/"
    for key, (role, policy) in _ATTACHMENTS.items():
        provider = {"policyArn": arn + policy, "roleSelector": matching(iam_role=role)}
        desk.add(key, desk.aws(key, IAM, "RolePolicyAttachment", provider))
    _autoscaler(desk)


def _autoscaler(desk: Desk) -> None:
    """The autoscaler may read everything and change only the groups that EKS tags as this cluster's."""
    tag = "aws:ResourceTag/k8s.io/cluster-autoscaler/"
    policy = _document(
        {"Effect": "Allow", "Action": list(_READ), "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": list(_WRITE),
            "Resource": "*",
            "Condition": {"StringEquals": {f"{tag}enabled": "true", f"{tag}{desk.eks_name}": "owned"}},
        },
    )
    key = "iam-policy-cluster-autoscaler"
    labels = _role("cluster-autoscaler")
    desk.add(key, desk.aws(key, IAM, "Policy", {"policy": policy}, labels=labels, tags={}))
    key = "iam-attach-cluster-autoscaler"
    provider = {
        "policyArnSelector": matching(iam_role="cluster-autoscaler"),
        "roleSelector": matching(iam_role="cluster-autoscaler"),
    }
    desk.add(key, desk.aws(key, IAM, "RolePolicyAttachment", provider))
