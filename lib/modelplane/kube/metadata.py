"""ObjectMeta: what an API server refuses in the metadata of any object."""

from __future__ import annotations

from collections.abc import Iterator

from modelplane.kube.names import is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name
from modelplane.kube.problem import Problem, join, kind_of, quote

_FIELDS = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def validate(meta: object, path: str) -> Iterator[Problem]:
    """Yield the problems of a `metadata` block at a path; a missing name is none, it may be generated.

    Source: https://github.com/kubernetes/apimachinery/blob/v0.36.2/pkg/api/validation/objectmeta.go
    """
    if not isinstance(meta, dict):
        yield Problem(path, f"must be an object, not {kind_of(meta)}")
        return
    for field in meta:
        if field not in _FIELDS:
            yield Problem(join(path, field), "is not a field of metadata")
    name, space = meta.get("name"), meta.get("namespace")
    if name is not None and not (isinstance(name, str) and is_dns_subdomain(name)):
        yield Problem(join(path, "name"), f"must be a lower case DNS name of at most 253 characters; got {quote(name)}")
    if space is not None and not (isinstance(space, str) and is_dns_label(space)):
        yield Problem(join(path, "namespace"), f"must be a DNS label of at most 63 characters; got {quote(space)}")
    for field in ("labels", "annotations"):
        if meta.get(field) is not None:
            yield from _entries(meta[field], join(path, field), labels=field == "labels")


def _entries(entries: object, path: str, labels: bool) -> Iterator[Problem]:
    if not isinstance(entries, dict):
        yield Problem(path, f"must be an object, not {kind_of(entries)}")
        return
    for key, value in entries.items():
        where = join(path, key)
        if not is_qualified_name(key if labels else key.lower()):
            yield Problem(where, "the key must be a name of at most 63 characters, with an optional DNS prefix and /")
        if not isinstance(value, str):
            yield Problem(where, f"must be a string, not {kind_of(value)}")
        elif labels and not is_label_value(value):
            yield Problem(where, f"must be a label value of at most 63 characters; got {quote(value)}")
