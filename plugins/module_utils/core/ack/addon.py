# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be done so that an add-on of an ACK cluster is as wished. Private to rdma.k8s: it may change any time.

Pure: an instance, a wish and what the catalogue offers in, a plan out. :mod:`answers` reads what the service says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .. import json_text, redact
from ..errors import RdmaError

GONE = "deleted"
SETTLED = ("active", "unhealthy")
"""States in which nothing is under way, beside :data:`GONE`. Any other one, also an unknown one, is waited for: A27."""

WAIT, INSTALL, UPGRADE, MODIFY, UNINSTALL = "wait", "install", "upgrade", "modify-config", "uninstall"
UNHEALTHY = "addon-unhealthy"

_MOST_DEPTH = 20
_COMBINED = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True)
class Instance:
    """An installed add-on. ``config`` is what the service told, its own defaults included (A32)."""

    version: str
    state: str
    config: Mapping[str, Any]

    @property
    def busy(self) -> bool:
        """Something is under way."""
        return self.state not in (*SETTLED, GONE)


@dataclass(frozen=True)
class Offer:
    """What the catalogue says of an add-on: a version, its schema as text, and where one can go from there (A31)."""

    version: str
    config_schema: str = ""
    upgradable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What somebody wants. ``None`` as version or configuration: whatever there is (A40)."""

    name: str
    present: bool = True
    version: Optional[str] = None
    config: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Plan:
    """What to do, in order. With a refusal nothing is done."""

    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: Optional[RdmaError] = None

    @property
    def changed(self) -> bool:
        """Whether something is written; a wait alone is no change (A40)."""
        return any(action != WAIT for action in self.actions)


def plan(found: Optional[Instance], wish: Wish, upgradable: Iterable[str] = ()) -> Plan:
    """The decision table of A40.

    :param upgradable: the versions that the catalogue lists as upgradable (A31).
    """
    state = GONE if found is None else found.state
    if state == GONE or found is None:
        return Plan((INSTALL,) if wish.present else ())
    if state == "deleting":
        return Plan((WAIT, INSTALL) if wish.present else (WAIT,))
    wait = (WAIT,) if found.busy else ()
    if not wish.present:
        return Plan((*wait, UNINSTALL))
    warnings = (UNHEALTHY,) if state == "unhealthy" else ()
    if wish.version is not None and wish.version != found.version:  # exactly: A41
        targets = list(upgradable)
        if wish.version not in targets:
            return Plan((), warnings, _not_upgradable(wish, found, targets))
        return Plan((*wait, UPGRADE), warnings)
    if wish.config is not None and differences(wish.config, found.config):
        return Plan((*wait, MODIFY), warnings)
    return Plan(wait, warnings)


def needs_offer(found: Optional[Instance], wish: Wish) -> bool:
    """Whether the plan depends on what the catalogue says of the installed version."""
    return bool(
        found is not None
        and wish.present
        and found.state not in (GONE, "deleting")
        and wish.version not in (None, found.version)
    )


def _not_upgradable(wish: Wish, found: Instance, targets: list[str]) -> RdmaError:
    return RdmaError(
        "addon_version_not_upgradable",
        "The add-on %s has version %s, and version %s is none that it can be upgraded to (%s)."
        % (wish.name, found.version, wish.version, ", ".join(targets) or "the catalogue offers none"),
        hint="There is no way back to an older version. Wish a version that is offered, or leave 'version' out.",
        installed=found.version,
        wished=wish.version,
        upgradable=targets,
    )


# Configurations


def differences(wished: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The keys, as paths, in which a configuration is not as wished. Keys that are not wished do not count (A32)."""
    return list(_different(wished, found, ""))


def _different(wished: Mapping[str, Any], found: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in wished.items():
        there = found.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            yield from _different(value, there, "%s%s." % (path, key))
        elif not same(value, there):
            yield "%s%s" % (path, key)


def same(left: Any, right: Any) -> bool:
    """Whether two values of a configuration mean the same: true is ``"true"`` and 5 is ``"5"`` there (A32)."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return set(left) == set(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right))
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    texts = _as_text(left), _as_text(right)
    return left is right if None in texts else texts[0] == texts[1]


def _as_text(value: Any) -> Optional[str]:
    """A plain value as the text that may stand for it; ``None`` for what is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value)) if whole else str(value)
    if isinstance(value, str):
        return value.lower() if value.lower() in ("true", "false") else value
    return None


def encoded(config: Mapping[str, Any]) -> str:
    """A configuration as the service takes it: JSON in a text (A22)."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def secrets(config: Any) -> list[str]:
    """The texts of a configuration that stand behind keys that sound like secrets; nobody may show them (A49)."""
    return list(_hidden(config, redact.redacted(config)))


def _hidden(value: Any, shown: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _hidden(entry, shown[key])
    elif isinstance(value, list):
        for entry, seen in zip(value, shown):
            yield from _hidden(entry, seen)
    elif value != shown:
        yield str(value)


# The schema of a configuration (A38)


def schema(text: str) -> Optional[dict[str, Any]]:
    """A JSON schema that names keys; ``None`` when the text is none, so that nothing can be checked by it."""
    try:
        found = json_text.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not (_keys(found, found) or found.get("additionalProperties") is False):
        return None
    return found


def require_known(name: str, version: str, config: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Refuse a configuration with a key that the schema does not have, or with a value that it does not list.

    :raises RdmaError: ``addon_config_unknown_keys`` or ``addon_config_refused``.
    """
    problems = list(_problems(config, rules, rules, "", 0))
    unknown = [path for path, allowed in problems if allowed is None]
    if unknown:
        known = sorted(_keys(rules, rules))
        raise RdmaError(
            "addon_config_unknown_keys",
            "The configuration of the add-on %s has no %s in version %s; it has %s."
            % (name, ", ".join(unknown), version, ", ".join(known) or "no keys"),
            hint="Take the keys from the schema of that version; the option 'describe' returns it.",
            unknown=unknown,
            known=known,
        )
    for path, allowed in problems:
        values = [encoded_value(value) for value in allowed or ()]
        raise RdmaError(
            "addon_config_refused",
            "The key %s of the configuration of the add-on %s must be one of %s in version %s."
            % (path, name, ", ".join(values), version),
            hint="Give one of these.",
            key=path,
            allowed=values,
        )


def without_unknown(found: Mapping[str, Any], rules: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    """What there is now, without the keys that another version no longer has."""
    if rules is None or _open(rules):
        return dict(found)
    keys = _keys(rules, rules)
    return {key: value for key, value in found.items() if key in keys}


def encoded_value(value: Any) -> str:
    """One value for a sentence."""
    return json.dumps(value, ensure_ascii=True)


def _problems(
    value: Any, rules: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> Iterator[tuple[str, Optional[list[Any]]]]:
    """Paths that are unknown (``None``), or whose value is not in the list."""
    rules = _resolved(rules, root)
    allowed = rules.get("enum")
    if path and isinstance(allowed, list) and not any(same(value, entry) for entry in allowed):
        yield path, allowed
    if not isinstance(value, Mapping) or depth >= _MOST_DEPTH:
        return
    keys = _keys(rules, root)
    closed = rules.get("additionalProperties") is False or (bool(keys) and not _open(rules))
    for key, entry in value.items():
        place = "%s.%s" % (path, key) if path else str(key)
        if isinstance(keys.get(key), Mapping):
            yield from _problems(entry, keys[key], root, place, depth + 1)
        elif key not in keys and closed:
            yield place, None


def _open(rules: Mapping[str, Any]) -> bool:
    """Whether a schema says that it takes keys beside those that it lists. Silence is no permission (A38)."""
    return bool(rules.get("patternProperties")) or rules.get("additionalProperties") not in (None, False)


def _keys(rules: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that a schema lists, with those of the schemas that it combines."""
    out: dict[str, Any] = {}
    todo, seen = [rules], set()
    while todo:
        part = _resolved(todo.pop(), root)
        if id(part) in seen:
            continue
        seen.add(id(part))
        listed = part.get("properties")
        out = {**(listed if isinstance(listed, dict) else {}), **out}
        for word in _COMBINED:
            entries = part.get(word)
            todo += [
                entry
                for entry in (entries if isinstance(entries, list) else [])
                if isinstance(entry, Mapping)
            ]
    return out


def _resolved(rules: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema instead of a reference to it, inside the same document."""
    for _step in range(_MOST_DEPTH):
        target = rules.get("$ref")
        if not isinstance(target, str) or not target.startswith("#/"):
            return rules
        place: Any = root
        for word in target[2:].split("/"):
            place = place.get(word) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping):
            return {}
        rules = place
    return {}
