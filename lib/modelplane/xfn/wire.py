"""Dictionaries to protobuf Structs and back, and requests whose objects are read only when they are looked at."""

from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
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


def part(struct: struct_pb2.Struct, path: tuple[str, ...]) -> Any:
    """Convert what is at a path; None where the path ends early."""
    if not path:
        return from_struct(struct)
    fields = struct.fields
    for key in path[:-1]:
        if key not in fields or fields[key].WhichOneof("kind") != "struct_value":
            return None
        fields = fields[key].struct_value.fields
    return _from_value(fields[path[-1]]) if path[-1] in fields else None


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
    # Encoded here and parsed at once: setting field by field through protobuf takes twice as long.
    struct.MergeFromString(_encode_struct(raw))


def _size(length: int) -> bytes:
    if length < 128:
        return _SIZES[length]
    encoded = bytearray()
    while length > 127:
        encoded.append(length & 127 | 128)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


_SIZES = [bytes([n]) for n in range(128)]


@lru_cache(maxsize=4096)
def _encode_key(key: str) -> bytes:
    encoded = key.encode()
    return b"\n" + _size(len(encoded)) + encoded + b"\x12"


def _encode_struct(raw: Mapping[str, Any]) -> bytes:
    entries = []
    for key, value in raw.items():
        if value is not None:
            encoded = _encode_value(value)
            entry = _encode_key(key) + _size(len(encoded)) + encoded
            entries.append(b"\n" + _size(len(entry)) + entry)
    return b"".join(entries)


def _encode_value(value: Any) -> bytes:
    """A google.protobuf.Value; its field numbers are those of struct.proto."""
    if isinstance(value, str):
        encoded = value.encode()
        return b"\x1a" + _size(len(encoded)) + encoded
    if value is True:
        return b"\x20\x01"
    if value is False:
        return b"\x20\x00"
    if isinstance(value, (int, float)):
        return b"\x11" + _DOUBLE.pack(value)
    if value.__class__ is dict or isinstance(value, Mapping):
        encoded = _encode_struct(value)
        return b"\x2a" + _size(len(encoded)) + encoded
    if isinstance(value, (list, tuple)):
        items = []
        for item in value:
            encoded = _encode_value(item)
            items.append(b"\n" + _size(len(encoded)) + encoded)
        encoded = b"".join(items)
        return b"\x32" + _size(len(encoded)) + encoded
    if value is None:
        return b"\x08\x00"
    message = f"cannot send a {type(value).__name__} to Crossplane"
    raise TypeError(message)


_DOUBLE = Struct("<d")
