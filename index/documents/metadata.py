"""What metadata of a document may hold: JSON that every reader of it takes, and takes alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tercet.index.documents.numbers import require_json_integer
from tercet.index.errors import InvalidDocumentError
from tercet.index.wording import shown

FieldType = Literal["keyword", "integer", "number", "boolean", "datetime"]
"""Of a declared field; `tercet.index.documents.fields` says what each holds."""

PARTITION = "partition"  # the field that `tercet.index.documents.partitions` is about
MAX_METADATA_LEVELS = 64
MAX_METADATA_BYTES = 8 * 2**20  # as UTF-8 JSON: as much as a request brings, and so for all other ways in


def require_metadata(name: str, metadata: object) -> dict[str, Any]:
    """The metadata of the document called so.

    Raises InvalidDocumentError where it is no mapping, or where it nests deeper than 64 levels, has keys
    other than strings or integers beyond 64 bits, and then says where.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidDocumentError(f"{name}: metadata is {shown(metadata)}; give an object", "metadata")
    fault = _fault(metadata, 1)
    if fault is not None:
        where, reason = fault
        part = f"metadata{where[:200]}"
        raise InvalidDocumentError(f"{name}: {part} is wrong: {reason}", part)
    return dict(metadata)


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What metadata of documents become: these, or their own with these merged into them (RFC 7396)."""

    metadata: Mapping[str, Any]
    merge: bool = False

    def of(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """What these become."""
        return merged(metadata, self.metadata) if self.merge else self.metadata


def value_at(values: Mapping[str, Any], name: str) -> Any:
    """What is under a name, or under a path of names joined by dots; of a list on the way what each item has.

    A name with a dot that is there itself is no path.
    """
    if name in values or "." not in name:
        return values.get(name)
    value: Any = values
    for part in name.split("."):
        if isinstance(value, list):
            value = [item[part] for item in value if isinstance(item, Mapping) and item.get(part) is not None]
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value


def merged(metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata changed as a JSON Merge Patch says (RFC 7396): objects are merged, null removes."""
    changed = dict(metadata)
    for name, value in patch.items():
        if value is None:
            changed.pop(name, None)
        elif isinstance(value, Mapping):
            present = changed.get(name)
            changed[name] = merged(present if isinstance(present, Mapping) else {}, value)
        else:
            changed[name] = value
    return changed


def _fault(value: object, level: int) -> tuple[str, str] | None:
    """Where in a value something is that JSON cannot hold, and why it cannot; None where there is nothing."""
    if value is None or isinstance(value, str | float | bool):
        return None
    if isinstance(value, int):
        try:
            require_json_integer(value)
        except ValueError as error:
            return "", str(error)
        return None
    if not isinstance(value, Mapping | list | tuple):
        return None  # for `json` to refuse
    if level > MAX_METADATA_LEVELS:
        return "", f"it nests deeper than {MAX_METADATA_LEVELS} levels; flatten it"
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, inner in items:
        if isinstance(value, Mapping) and not isinstance(key, str):
            return "", f"key {shown(key)} is not a string"
        fault = _fault(inner, level + 1)
        if fault is not None:
            return f".{key}{fault[0]}"[:200], fault[1]
    return None
