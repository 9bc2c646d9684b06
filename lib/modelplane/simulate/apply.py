"""Server-side apply, as far as one manager per object needs it.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from collections.abc import Mapping
from typing import Any

from modelplane.kube.objects import Object, mapping, objects, text


def merge(stored: Object | None, wanted: Object, before: Object | None) -> Object:
    """Apply what a manager wants to what is stored; `before` is what it wanted last time, None where that is unknown.

    Fields it wanted and wants no longer go; fields of others stay. Lists are replaced as a whole, except finalizers and
    owner references, which are sets.
    """
    if stored is None:
        return wanted
    meta = _metadata(mapping(stored, "metadata"), mapping(wanted, "metadata"), mapping(before, "metadata"))
    rest = {k: v for k, v in wanted.items() if k not in ("metadata", "status")}
    earlier = {k: v for k, v in (before or {}).items() if k not in ("metadata", "status")}
    return {**_fields({k: v for k, v in stored.items() if k != "metadata"}, rest, earlier), "metadata": meta}


def _fields(stored: Any, wanted: Any, before: Any) -> Any:
    if not isinstance(stored, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    gone = before.keys() - wanted.keys() if isinstance(before, Mapping) else set()
    merged = {k: v for k, v in stored.items() if k not in gone}
    for field, value in wanted.items():
        earlier = before.get(field) if isinstance(before, Mapping) else None
        merged[field] = _fields(stored.get(field), value, earlier)
    return merged


def _metadata(stored: Mapping[str, Any], wanted: Mapping[str, Any], before: Mapping[str, Any]) -> Object:
    merged: Object = dict(stored)
    for field in ("labels", "annotations"):
        values = _fields(stored.get(field) or {}, wanted.get(field) or {}, before.get(field) or {})
        if values:
            merged[field] = values
        else:
            merged.pop(field, None)
    have = list(stored.get("finalizers") or ())
    dropped = set(before.get("finalizers") or ()) - set(wanted.get("finalizers") or ())
    finalizers = [f for f in have if f not in dropped]
    finalizers += [f for f in wanted.get("finalizers") or () if f not in finalizers]
    if finalizers:
        merged["finalizers"] = finalizers
    else:
        merged.pop("finalizers", None)
    owners = {text(ref, "uid"): ref for ref in objects(stored, "ownerReferences")}
    owners |= {text(ref, "uid"): ref for ref in objects(wanted, "ownerReferences")}
    if owners:
        merged["ownerReferences"] = list(owners.values())
    return merged
