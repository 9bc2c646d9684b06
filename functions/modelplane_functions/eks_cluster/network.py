"""The VPC: subnets in every zone, one way in, one way out, and who may talk to whom."""

from collections.abc import Sequence

from modelplane import names
from modelplane.composed.managed import matching
from modelplane.kube.objects import Object
from modelplane_functions.eks_cluster.desk import EC2, Desk
from modelplane_functions.eks_cluster.subnets import Subnet

EVERYWHERE = "0.0.0.0/0"


def public_name(desk: Desk, subnet: Subnet) -> str:
    """Name of a public subnet."""
    return desk.name(f"subnet-{subnet.index}", names.child(desk.spec.name, f"subnet-{subnet.zone}"))


def private_name(desk: Desk, subnet: Subnet) -> str:
    """Name of a private subnet."""
    return desk.name(f"private-subnet-{subnet.index}", names.child(desk.spec.name, f"private-subnet-{subnet.zone}"))


def compose(desk: Desk, subnets: Sequence[Subnet]) -> None:
    """Compose the network."""
    spec = desk.spec
    vpc = {
        "cidrBlock": spec.vpc_cidr,
        "enableDnsHostnames": True,
        "enableDnsSupport": True,
    }
    desk.add("vpc", desk.aws("vpc", EC2, "VPC", vpc, tags={"Name": spec.name}))
    for subnet in subnets:
        _subnet(desk, subnet)
    desk.add(
        "internet-gateway",
        desk.aws("internet-gateway", EC2, "InternetGateway", {"vpcIdSelector": matching()}, tags={}),
    )
    _nat(desk, subnets)
    _routes(desk, subnets)
    _efa(desk)
    _efs(desk)


def _subnet(desk: Desk, subnet: Subnet) -> None:
    shared = {f"kubernetes.io/cluster/{desk.eks_name}": "shared"}
    for tier, key, cidr, name, role in (
        ("public", f"subnet-{subnet.index}", subnet.public, public_name(desk, subnet), "elb"),
        ("private", f"private-subnet-{subnet.index}", subnet.private, private_name(desk, subnet), "internal-elb"),
    ):
        if desk.seen(key) and not all(desk.provider(key).get(f) for f in ("availabilityZone", "cidrBlock")):
            continue
        provider = {
            "availabilityZone": subnet.zone,
            "cidrBlock": cidr,
            "mapPublicIpOnLaunch": tier == "public",
            "vpcIdSelector": matching(),
        }
        desk.add(
            key,
            desk.aws(
                key,
                EC2,
                "Subnet",
                provider,
                name=name,
                labels={"modelplane.ai/zone": subnet.zone, "modelplane.ai/subnet-tier": tier},
                tags={f"kubernetes.io/role/{role}": "1", **(shared if tier == "public" else {})},
            ),
        )


def _nat(desk: Desk, subnets: Sequence[Subnet]) -> None:
    if desk.spec.regional_nat:
        provider: Object = {
            "availabilityMode": "regional",
            "connectivityType": "public",
            "vpcIdSelector": matching(),
        }
    else:
        desk.add("nat-eip", desk.aws("nat-eip", EC2, "EIP", {"domain": "vpc"}, tags={}))
        provider = {"allocationIdSelector": matching(), "subnetIdRef": {"name": public_name(desk, subnets[0])}}
    desk.add("nat-gateway", desk.aws("nat-gateway", EC2, "NATGateway", provider, tags={}))


def _routes(desk: Desk, subnets: Sequence[Subnet]) -> None:
    for tier, prefix, target in (
        ("public", "", {"gatewayIdSelector": matching()}),
        ("private", "private-", {"natGatewayIdSelector": matching()}),
    ):
        table = f"{prefix}route-table"
        desk.add(
            table,
            desk.aws(
                table,
                EC2,
                "RouteTable",
                {"vpcIdSelector": matching()},
                labels={"modelplane.ai/subnet-tier": tier},
                tags={},
            ),
        )
        default = f"{prefix}route-default"
        provider = {
            "destinationCidrBlock": EVERYWHERE,
            "routeTableIdSelector": matching(subnet_tier=tier),
            **target,
        }
        desk.add(default, desk.aws(default, EC2, "Route", provider))
        for subnet in subnets:
            key = f"{prefix}route-table-association-{subnet.index}"
            name = public_name(desk, subnet) if tier == "public" else private_name(desk, subnet)
            association = {"routeTableIdSelector": matching(subnet_tier=tier), "subnetIdRef": {"name": name}}
            desk.add(key, desk.aws(key, EC2, "RouteTableAssociation", association))


def _efa(desk: Desk) -> None:
    spec = desk.spec
    group = {
        "name": f"{spec.name}-efa",
        "description": "Elastic Fabric Adapter traffic between the nodes of one cluster",
        "vpcIdSelector": matching(),
    }
    desk.add(
        "efa-security-group",
        desk.aws(
            "efa-security-group",
            EC2,
            "SecurityGroup",
            group,
            name=desk.name("efa-security-group", names.child(spec.name, "efa-sg")),
            labels={"modelplane.ai/fabric": "EFA"},
            tags={},
        ),
        gate=spec.efa,
    )
    for direction in ("ingress", "egress"):
        key = f"efa-security-group-{direction}"
        rule = {
            "ipProtocol": "-1",
            "securityGroupIdSelector": matching(fabric="EFA"),
            "referencedSecurityGroupIdSelector": matching(fabric="EFA"),
        }
        kind = f"SecurityGroup{direction.capitalize()}Rule"
        desk.add(key, desk.aws(key, EC2, kind, rule, tags={}), gate=spec.efa)


def _efs(desk: Desk) -> None:
    spec = desk.spec
    group = {
        "name": f"{spec.name}-efs",
        "description": "NFS from the VPC to the cluster's shared file system",
        "vpcIdSelector": matching(),
    }
    desk.add(
        "efs-security-group",
        desk.aws("efs-security-group", EC2, "SecurityGroup", group, labels={"modelplane.ai/sg-role": "efs"}, tags={}),
    )
    rule = {
        "ipProtocol": "tcp",
        "fromPort": 2049,
        "toPort": 2049,
        "cidrIpv4": spec.vpc_cidr,
        "securityGroupIdSelector": matching(sg_role="efs"),
    }
    desk.add(
        "efs-security-group-ingress",
        desk.aws("efs-security-group-ingress", EC2, "SecurityGroupIngressRule", rule, tags={}),
    )
