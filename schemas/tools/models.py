"""Pydantic models of a kind, made from its structural schema."""

from __future__ import annotations

import copy
from typing import Any

from datamodel_code_generator import DataModelType, InputFileType, PythonVersion, generate
from datamodel_code_generator.format import Formatter
from datamodel_code_generator.parser import LiteralType
from openapi import Schema

# Models state names, types, enums and what is required; bounds and defaults are the schema's to check.
_KEPT = frozenset({"type", "properties", "required", "items", "additionalProperties", "enum"})
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "generateName": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}


def module(kind: str, api_version: str, schema: Schema, header: str, *, status: bool) -> str:
    """Return the source of a module whose class `kind` is the whole object; status says whether to model that too."""
    root = _plain(copy.deepcopy(schema))
    properties = root["properties"]
    properties["apiVersion"] = {"type": "string", "enum": [api_version]}
    properties["kind"] = {"type": "string", "enum": [kind]}
    properties["metadata"] = _METADATA
    if not status:
        properties.pop("status", None)
    root["required"] = sorted({*root.get("required", ()), "apiVersion", "kind"} & set(properties))
    text = generate(
        {**root, "title": kind},
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        class_name=kind,
        enum_field_as_literal=LiteralType.All,
        use_standard_collections=True,
        use_union_operator=True,
        use_double_quotes=True,
        disable_timestamp=True,
        allow_population_by_field_name=True,
        custom_file_header=header,
        formatters=[Formatter.BUILTIN],
    )
    if not isinstance(text, str):
        raise TypeError(f"{kind}: want one module, got {type(text).__name__}")
    return text.rstrip() + "\n"


def _plain(schema: Schema) -> Schema:
    """Reduce a structural schema to what shapes a model."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    plain: dict[str, Any] = {key: value for key, value in schema.items() if key in _KEPT}
    if plain.get("type") != "string":
        plain.pop("enum", None)
    if "properties" in plain:
        plain["properties"] = {name: _plain(child) for name, child in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _plain(plain["items"])
    if isinstance(plain.get("additionalProperties"), dict):
        plain["additionalProperties"] = _plain(plain["additionalProperties"])
    if "required" in plain:
        defaulted = {name for name, child in schema.get("properties", {}).items() if "default" in child}
        plain["required"] = [name for name in plain["required"] if name not in defaulted]
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    if open_ended:
        plain["additionalProperties"] = True
        plain.setdefault("type", "object")
    elif plain.get("properties"):
        plain.setdefault("additionalProperties", False)
    return plain
