"""Dictionaries to protobuf Structs and back, and requests whose objects are read only when they are looked at."""

from collections.abc import Mapping
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, struct_pb2


def _envelope() -> Any:
    """The request message with every object left as the bytes it came in.

    On the wire a message field and a bytes field are the same, so this parses any request at the speed of copying it,
    and an object that nobody looks at costs nothing more.
    """
    file = descriptor_pb2.FileDescriptorProto()
    fnv1.DESCRIPTOR.CopyToProto(file)
    resource = next(m for m in file.message_type if m.name == "Resource")
    field = next(f for f in resource.field if f.name == "resource")
    field.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
    field.ClearField("type_name")
    pool = descriptor_pool.DescriptorPool()
    for dependency in (struct_pb2, duration_pb2):
        copied = descriptor_pb2.FileDescriptorProto()
        dependency.DESCRIPTOR.CopyToProto(copied)
        pool.Add(copied)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.RunFunctionRequest"))


Envelope = _envelope()


def load(payload: bytes) -> dict[str, Any]:
    """Read an object from its bytes; `metadata.managedFields`, which can be most of it, is left out."""
    return from_struct(parse(payload))


def parse(payload: bytes) -> struct_pb2.Struct:
    """Parse an object, without `metadata.managedFields`."""
    struct = struct_pb2.Struct.FromString(payload)
    if "metadata" in struct.fields:
        metadata = struct.fields["metadata"].struct_value.fields
        if "managedFields" in metadata:
            del metadata["managedFields"]
    return struct


def canonical(struct: struct_pb2.Struct) -> bytes:
    """Bytes that are equal for equal objects.

    Those that come over the wire are not: Crossplane encodes maps in random order.
    """
    return struct.SerializeToString(deterministic=True)


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Convert a Struct; whole numbers, which travel as doubles, come back as int."""
    fields = struct.fields
    return {key: _from_value(fields[key]) for key in fields}


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        fields = value.struct_value.fields
        return {key: _from_value(fields[key]) for key in fields}
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
