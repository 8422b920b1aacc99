"""Fields that several collections declare, and what to say of a field that is not declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unicodedata import normalize

from tercet.index.documents.metadata import PARTITION, FieldType

SHOWN_CHARACTERS = 80


class SharedFields(dict[str, FieldType]):
    """The fields that each of several collections declares, which are searched as one.

    lacking: by the name of a field that only some declare, the others.
    """

    lacking: Mapping[str, Sequence[str]] = {}

    @classmethod
    def of(cls, collections: Mapping[str, Mapping[str, FieldType]]) -> SharedFields:
        """From the fields of each collection, by name; a field's type is that of the first which has it."""
        known: dict[str, FieldType] = {}
        for fields in collections.values():
            known = {**fields, **known}
        lacking = {
            name: [collection for collection, fields in collections.items() if name not in fields]
            for name in known
        }
        shared = cls({name: kind for name, kind in known.items() if not lacking[name]})
        shared.lacking = {name: others for name, others in lacking.items() if others}
        return shared


def undeclared(field: str, fields: Mapping[str, FieldType]) -> str:
    """That a field is not among those declared, which there are, and what to do."""
    shown = repr(field[:SHOWN_CHARACTERS])
    if field == PARTITION:
        return (
            f'{shown} is not declared: put a document with a "partition" by a key with the access admin, or '
            'make the collection with "partitioned": true'
        )
    alike = next((other for other in fields if normalize("NFC", other) == normalize("NFC", field)), field)
    if alike != field:
        written = f"{alike!a}, not {field[:SHOWN_CHARACTERS]!a}"
        return f"{shown} is declared in another Unicode form, which looks the same: write it as {written}"
    known = ", ".join(sorted(fields)) or "none"
    if not isinstance(fields, SharedFields):
        return (
            f"{shown} is not declared in this collection; declared fields: {known}. To declare it over what "
            "is stored: POST /collections/{name}/fields, or tercet collection fields"
        )
    others = fields.lacking.get(field)
    if others is None:
        return f"{shown} is not declared in the collections of this alias; all of them declare: {known}"
    first = others[0]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return (
        f"{shown} is not declared in collection {first!r}{more} of this alias; declare it there over what is "
        f"stored: POST /collections/{first}/fields, or tercet collection fields {first}"
    )


def unsuited(field: str, fields: Mapping[str, FieldType], kinds: Sequence[FieldType]) -> str:
    """That what is asked for takes a field of these types, and this one is not declared, or of another."""
    takes = f"takes a field of type {' or '.join(kinds)}, but"
    if field not in fields:
        return f"{takes} {undeclared(field, fields)}"
    suited = ", ".join(declared for declared in sorted(fields) if fields[declared] in kinds) or "none"
    return f"{takes} {field[:SHOWN_CHARACTERS]!r} is {fields[field]}; such fields: {suited}"
