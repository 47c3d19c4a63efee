# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strict conversion between dataclasses and plain JSON data. Private to rdma.k8s: it may change with any release.

A field is declared with one of the functions below, which say how its JSON value is checked. A field that equals its
default is left out of the JSON form, so that a document stays small; keys that are not known are ignored, so that a
document of a later minor version can still be read.
"""

from __future__ import annotations

# Exact types are meant here: a boolean is no integer (F138), and comparing them is the fastest test there is.
# pylint: disable=unidiomatic-typecheck,invalid-field-call
import sys
from dataclasses import MISSING, Field, field, fields
from operator import attrgetter
from typing import Any, Callable, Optional, TypeVar

from .errors import RdmaError
from .net import quoted

T = TypeVar("T")
Where = Any
"""A place in a document: its text, or the place around it with a key or a number, put together only for an error."""
Decode = Callable[[Any, Where], Any]

_PLAIN = frozenset((str, int, float, bool, type(None)))
_SHORT = 64
_SHARED = 4096

_DITTO: dict[str, Any] = {}
"""The cell of a table that repeats the cell above it."""

_EMPTY: dict[str, Any] = {"": None}
"""The cell of a table whose value is an empty object."""

_PLANS: dict[type, list[tuple[str, Decode, Any, bool]]] = {}
_PARSED: dict[type, dict[str, Any]] = {}
_READERS: dict[type, Any] = {}
_REQUIRED = object()
"""Stands for the default of a field without one: equal to no value."""


def malformed(where: Where, expected: str, found: Any) -> RdmaError:
    """The error for a JSON value of a wrong kind at ``where`` (a path such as ``links[3].mtu``)."""
    where = _path(where)
    shown = quoted(found)
    return RdmaError(
        "document_malformed",
        "%s must be %s, found %s." % (where, expected, shown),
        hint="Record the document again, or correct this value.",
        where=where,
        expected=expected,
        found=shown,
    )


def natural(value: str) -> Optional[int]:
    """The number that a text of one to ten ASCII digits holds, ``None`` for any other text."""
    return int(value) if len(value) <= 10 and value.isascii() and value.isdigit() else None


def _path(where: Where) -> str:
    if type(where) is str:
        return where
    around, part = where
    return _path(around) + ("[%d]" % part if type(part) is int else ".%s" % part)


def _decode_text(value: Any, where: Where) -> str:
    """Short texts are kept once, however many nodes say the same."""
    if type(value) is not str:
        raise malformed(where, "a text", value)
    return sys.intern(value) if len(value) < _SHORT else value


def _decode_integer(value: Any, where: Where) -> int:
    if type(value) is not int:  # bool is a subclass of int, and not an integer here (F138)
        raise malformed(where, "an integer", value)
    return value


def _decode_number(value: Any, where: Where) -> float:
    if type(value) not in (int, float):
        raise malformed(where, "a number", value)
    return float(value)


def _decode_boolean(value: Any, where: Where) -> bool:
    if type(value) is not bool:
        raise malformed(where, "true or false", value)
    return value


def _decode_anything(value: Any, where: Where) -> Any:
    return value


def _optional(decode: Decode) -> Decode:
    def wrapped(value: Any, where: Where) -> Any:
        return None if value is None else decode(value, where)

    return wrapped


def _list_of(decode: Decode) -> Decode:
    def wrapped(value: Any, where: Where) -> Any:
        if type(value) is not list:
            raise malformed(where, "a list", value)
        return tuple([decode(item, (where, number)) for number, item in enumerate(value)])

    return wrapped


def _map_of(decode: Decode) -> Decode:
    def wrapped(value: Any, where: Where) -> Any:
        if type(value) is not dict:
            raise malformed(where, "an object", value)
        return {_decode_text(key, where): decode(item, (where, key)) for key, item in value.items()}

    return wrapped


def _make(decode: Decode, default: Any) -> Any:
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"decode": decode})
    return field(default=default, metadata={"decode": decode})


def text(default: Any = MISSING) -> Any:
    """A text; ``None`` is allowed when it is the default."""
    return _make(_optional(_decode_text) if default is None else _decode_text, default)


def integer(default: Any = MISSING) -> Any:
    """An integer; ``None`` is allowed when it is the default."""
    return _make(_optional(_decode_integer) if default is None else _decode_integer, default)


def number(default: Any = MISSING) -> Any:
    """An integer or a float; ``None`` is allowed when it is the default."""
    return _make(_optional(_decode_number) if default is None else _decode_number, default)


def boolean(default: Any = MISSING) -> Any:
    """A truth value; ``None`` is allowed when it is the default."""
    return _make(_optional(_decode_boolean) if default is None else _decode_boolean, default)


def anything(default: Any = None) -> Any:
    """Any JSON value, taken over as it is (documents that are checked later, such as those of IMDS)."""
    return _make(_decode_anything, default)


def texts(default: Any = ()) -> Any:
    """A list of texts; ``None`` (not known) is allowed when it is the default."""
    decode = _list_of(_decode_text)
    return _make(_optional(decode) if default is None else decode, default)


def text_map() -> Any:
    """A map of text to text."""
    return _make(_map_of(_decode_text), {})


def rows(cls: Any, default: Any = ()) -> Any:
    """A list of values that the JSON form holds as one text each: ``cls.parse(text)`` and ``str(value)``.

    In the compact layout a word ``=`` repeats the word at its place in the text above.
    """

    def decode_rows(value: Any, where: Where) -> Any:
        if type(value) is not list:
            raise malformed(where, "a list", value)
        for number, entry in enumerate(value):
            if type(entry) is not str:
                raise malformed((where, number), "a text", entry)
        texts_ = _filled_in(value, where)
        return tuple([_parsed(cls, entry, (where, number)) for number, entry in enumerate(texts_)])

    return _make(_optional(decode_rows) if default is None else decode_rows, default)


def _parsed(cls: Any, text_: str, where: Where) -> Any:
    """The value of a row; nodes of a fleet say many rows alike, and values are frozen, so equal ones are shared."""
    known = _PARSED.setdefault(cls, {})
    found = known.get(text_)
    if found is None:
        if len(known) >= _SHARED:
            known.clear()
        found = known[text_] = cls.parse(text_, _path(where))
    return found


def _filled_in(texts_: list[str], where: Where) -> list[str]:
    """Rows with the words that ``=`` stands for."""
    filled: list[str] = []
    above: list[str] = []
    for number, text_ in enumerate(texts_):
        words = text_.split(" ")
        if "=" in words:
            if "=" in words[len(above) :]:
                raise malformed((where, number), "without '=' where no word stands above", text_)
            words = [above[at] if word == "=" else word for at, word in enumerate(words)]
        above = words
        filled.append(
            " ".join([_unmarked(word) for word in words])
            if any("==" in word for word in words)
            else " ".join(words)
        )
    return filled


def _marked(text_: str) -> str:
    """A row in which a word of nothing but ``=`` has one more of them, so that it is no repetition."""
    if "=" not in text_:
        return text_
    return " ".join(["=" + word if word and not word.strip("=") else word for word in text_.split(" ")])


def _unmarked(word: str) -> str:
    return word[1:] if word.startswith("==") and not word.strip("=") else word


def _repeated(texts_: list[str]) -> list[str]:
    """The rows with ``=`` for each word of two or more characters that stands at the same place in the row above."""
    rows_ = []
    above: list[str] = []
    for text_ in texts_:
        words = text_.split(" ")
        rows_.append(
            " ".join(
                [
                    "=" if len(word) > 1 and above[at : at + 1] == [word] else word
                    for at, word in enumerate(words)
                ]
            )
        )
        above = words
    return rows_


def row(cls: Any) -> Any:
    """One value that the JSON form holds as a text (see ``rows``), or ``None``."""
    return _make(_optional(lambda value, where: _parsed(cls, _decode_text(value, where), where)), None)


def item(cls: Any, default: Any = None) -> Any:
    """One nested object of the dataclass ``cls``; ``None`` is allowed when it is the default."""

    def decode_item(value: Any, where: Where) -> Any:
        return decode(cls, value, where)

    return _make(_optional(decode_item) if default is None else decode_item, default)


def items(cls: Any, default: Any = ()) -> Any:
    """A list of objects of the dataclass ``cls``; ``None`` (not known) is allowed when it is the default.

    The JSON form is a list of objects, or in the compact layout a table ``{"columns": [...], "rows": [[...], ...]}``. A
    cell ``{}`` repeats the cell above it. A column of lists of objects stands as its name and their columns, its cells
    are lists of rows, and the row above the first one is then the last one of the cell above.
    """

    def decode_items(value: Any, where: Where) -> Any:
        if type(value) is dict:
            value = _objects_of_table(value, where)
        if type(value) is not list:
            raise malformed(where, "a list", value)
        return tuple([decode(cls, item, (where, number)) for number, item in enumerate(value)])

    return _make(_optional(decode_items) if default is None else decode_items, default)


def _objects_of_table(table: dict[str, Any], where: Where) -> list[Any]:
    columns, rows_ = table.get("columns"), table.get("rows")
    if type(columns) is not list or type(rows_) is not list:
        raise malformed(where, "a list, or a table with 'columns' and 'rows'", table)
    return _objects_of_rows(columns, rows_, where, [None] * len(columns))


def _objects_of_rows(columns: list[Any], rows_: list[Any], where: Where, above: list[Any]) -> list[Any]:
    """The objects of rows. ``above`` is the row above the first one, and holds the last one afterwards."""
    names, inner = _names_of_columns(columns, where)
    objects = []
    for number, row_ in enumerate(rows_):
        if type(row_) is not list or len(row_) != len(columns):
            raise malformed(((where, "rows"), number), "a list of %d values" % len(columns), row_)
        values = list(row_)
        for at, cell in enumerate(row_):
            if at in inner and type(cell) is list:
                above[at] = above[at] if type(above[at]) is list else [None] * len(inner[at])
                place = (((where, "rows"), number), names[at])
                values[at] = _objects_of_rows(inner[at], cell, place, above[at])
            elif cell == _DITTO and type(cell) is dict:
                values[at] = above[at]
            elif cell == _EMPTY:
                values[at] = above[at] = {}
            else:
                above[at] = cell
        objects.append(dict(zip(names, values)))
    return objects


def _names_of_columns(columns: list[Any], where: Where) -> tuple[list[str], dict[int, list[Any]]]:
    """The names of the columns, and the columns of those that hold lists of objects by their place."""
    names, inner = [], {}
    for at, column in enumerate(columns):
        name = column
        if type(column) is list and len(column) == 2 and type(column[1]) is list:
            name, inner[at] = column
        if type(name) is not str:
            raise malformed(((where, "columns"), at), "a name, or a name and columns", column)
        names.append(name)
    return names, inner


def _plan(cls: Any) -> list[tuple[str, Decode, Any, bool]]:
    plan = _PLANS.get(cls)
    if plan is None:
        plan = [_plan_entry(entry) for entry in fields(cls)]
        _PLANS[cls] = plan
    return plan


def _plan_entry(entry: Field[Any]) -> tuple[str, Decode, Any, bool]:
    if entry.default_factory is not MISSING:
        return entry.name, entry.metadata["decode"], entry.default_factory(), False
    required = entry.default is MISSING
    return entry.name, entry.metadata["decode"], None if required else entry.default, required


def decode(cls: type[T], document: Any, where: Where = "document") -> T:
    """Build ``cls`` from plain JSON data.

    :raises RdmaError: ``document_malformed``, with the path of the first value that is missing or of a wrong kind.
    """
    if type(document) is not dict:
        raise malformed(where, "an object", document)
    values = {}
    for name, decoder, _default, required in _plan(cls):
        if name in document:
            values[name] = decoder(document[name], (where, name))
        elif required:
            raise malformed((where, name), "present", None)
    return cls(**values)


def encode(value: Any, compact: bool = False) -> Any:
    """Plain JSON data of a value: fields that hold their default are left out.

    :param compact: write lists of two or more objects as one table, each key only once (see :func:`items`), and rows
        without the words that they repeat (see :func:`rows`).
    """
    cls = type(value)
    if cls in _PLAIN:
        return value
    if cls in (list, tuple):
        return _encode_list(value, compact)
    if cls is dict:
        return {key: encode(entry, compact) for key, entry in value.items()}
    return str(value) if _is_row(value) else _encode_object(value, compact)


def _encode_list(values: Any, compact: bool) -> Any:
    """A list, or in the compact layout a table. A list with a dataclass holds one class only."""
    if not values or not hasattr(values[0], "__dataclass_fields__"):
        return [entry if type(entry) in _PLAIN else encode(entry, compact) for entry in values]
    several = compact and len(values) > 1
    if _is_row(values[0]):
        texts_ = [_marked(str(entry)) for entry in values]
        return _repeated(texts_) if several else texts_
    return _table(values) if several else [_encode_object(entry, compact) for entry in values]


def _encode_object(value: Any, compact: bool) -> dict[str, Any]:
    names, defaults, read = _reader(type(value))
    document = {}
    for name, default, held in zip(names, defaults, read(value)):
        if held is not default and held != default:
            document[name] = held if type(held) in _PLAIN else encode(held, compact)
    return document


def _reader(cls: Any) -> Any:
    """Names and defaults of the fields of a class, and a function that reads all of them at once."""
    found = _READERS.get(cls)
    if found is None:
        plan = _plan(cls)
        names = tuple([name for name, *_rest in plan])
        defaults = tuple([_REQUIRED if required else default for *_rest, default, required in plan])
        first = attrgetter(names[0])
        read = attrgetter(*names) if len(names) > 1 else lambda value: (first(value),)
        found = _READERS[cls] = (names, defaults, read)
    return found


def _is_row(value: Any) -> bool:
    return hasattr(value, "parse")


def _table(values: Any) -> dict[str, Any]:
    columns = _columns(values)
    return {"columns": columns, "rows": _rows_of_table(columns, values, [None] * len(columns))}


def _columns(values: Any) -> list[Any]:
    """The fields that differ from their default in one of the objects; lists of objects with columns of their own."""
    columns: list[Any] = []
    for name, _decoder, default, required in _plan(type(values[0])):
        held = [getattr(value, name) for value in values]
        if required or any(entry != default for entry in held):
            inner = [entry for entries in held if type(entries) is tuple for entry in entries]
            nested = bool(inner) and hasattr(inner[0], "__dataclass_fields__") and not _is_row(inner[0])
            columns.append([name, _columns(inner)] if nested else name)
    return columns


def _rows_of_table(columns: list[Any], values: Any, above: list[Any]) -> list[Any]:
    """One row for each object, with ``above`` as in :func:`_objects_of_rows`."""
    rows_ = []
    for value in values:
        row_: list[Any] = []
        for at, column in enumerate(columns):
            if type(column) is list and getattr(value, column[0]) is not None:
                above[at] = above[at] if type(above[at]) is list else [None] * len(column[1])
                row_.append(_rows_of_table(column[1], getattr(value, column[0]), above[at]))
                continue
            cell = encode(getattr(value, column[0] if type(column) is list else column), True)
            cell = _EMPTY if cell == {} else cell
            row_.append(_DITTO if cell == above[at] and _is_long(cell) else cell)
            above[at] = cell
        rows_.append(row_)
    return rows_


def _is_long(cell: Any) -> bool:
    """Whether the mark for a repeated cell is shorter than the cell."""
    if type(cell) in (str, list, dict):
        return bool(cell)
    return type(cell) is int and cell > 99
