"""Dictionaries to protobuf Structs and back."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Convert a Struct; whole numbers, which travel as doubles, come back as int."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        return from_struct(value.struct_value)
    if kind == "list_value":
        return [_from_value(v) for v in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    return None


def fill(struct: struct_pb2.Struct, raw: Mapping[str, Any]) -> None:
    """Fill an empty Struct.

    An entry of a mapping that is None is left out: server-side apply reads a null as "remove this field".
    Raises TypeError for a value that JSON has no form for.
    """
    fields = struct.fields
    for key, value in raw.items():
        if value is not None:
            _fill_value(fields[key], value)


def _fill_value(target: struct_pb2.Value, value: Any) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, (int, float)):
        target.number_value = value
    elif isinstance(value, Mapping):
        target.struct_value.SetInParent()
        fill(target.struct_value, value)
    elif isinstance(value, (list, tuple)):
        target.list_value.SetInParent()
        for item in value:
            _fill_value(target.list_value.values.add(), item)
    elif value is None:
        target.null_value = struct_pb2.NULL_VALUE
    else:
        message = f"cannot send a {type(value).__name__} to Crossplane"
        raise TypeError(message)
