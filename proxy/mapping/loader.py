"""Loader of a mappings folder: schema, rules, tables. Every mistake is an error with file and line."""

import re
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from proxy import errors
from proxy.kit import SCHEMA, located_yaml
from proxy.kit.located_yaml import Trail
from proxy.mapping import specs, transforms
from proxy.mapping.paths import Schema, read_schema
from proxy.mapping.rules import FieldRule, ObjectRules, SearchField, Tables
from proxy.mapping.transforms import KINDS, KnownUid, Uids
from proxy.model import Path as FieldPath

TABLES = {"uids.yaml", "spec_names.yaml", "spec_keys.yaml", "search.yaml"}
ROOTS = ("Part", "Brand", "Seller", "Category")  # objects that have endpoints of their own
# Folders of a mappings folder with what other dialects make of a part, and the object that is the part.
VIEWS = {"v4": "WrapperPart", "sheet": "SheetPart"}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")  # of a path of msgspec
SPEC_KEY = "spec_key"  # the transform that returns v3's spec keys


@dataclass(frozen=True, slots=True, eq=False)
class Mappings:
    """Content of a mappings folder: rules by the name of their object, and file and line of each field's rule; `views`
    are the mappings of other dialects, by the name of the object that is a part there."""

    schema: Schema
    rules: dict[str, ObjectRules]
    tables: Tables
    transforms: dict[str, Any]
    places: dict[tuple[str, str], str]
    views: dict[str, "Mappings"]

    def missing_source(self, name: str, path: FieldPath, features: Set[str]) -> str | None:
        """Return why a field, such as `offers.on_order_eta`, has no source with these features; None if it has one."""
        rule = self.rules[name].fields.get(path[0])
        if rule is None:
            return "v3 has no such field"
        if rule.none is not None or (rule.feature and rule.feature not in features):
            return rule.none or f"the plan lacks {rule.feature}"
        below = path[2:] if rule.keyed else path[1:]
        return self.missing_source(rule.target, below, features) if rule.target and below else None

    def spelled(self, name: str, path: FieldPath) -> list[FieldPath]:
        """Return the paths in a response that a requested path such as `offers.seller.name` refers to, none if it leads
        to no field: below a keyed object any key is accepted, and a spec can have other keys there."""
        target: str | None = name
        below = path
        while below:
            rule = self.rules[target].fields.get(below[0]) if target else None
            if rule is None:
                return []
            # A key is data, such as that of a spec: any is accepted, and finds nothing where no part has it.
            target, below = rule.target, below[2 if rule.keyed else 1 :]
        key = self.rules[name].fields[path[0]].key
        if key and key.through == SPEC_KEY and len(path) > 1:
            return [(path[0], each, *path[2:]) for each in self.tables.specs.spellings.get(path[1], (path[1],))]
        return [path]


def load(folder: Path, site: str = "octopart", own_uids: Path | None = None) -> Mappings:
    """Read and check a mappings folder, with `{site}` filled in, and a site's own table of uids. Raises ConfigError,
    which names file, line and what is wrong."""
    rules, places = _rules(folder, site)
    try:
        names = specs.SpecNames(_table(folder / "spec_names.yaml", specs.SpecName))
    except ValueError as error:
        raise errors.ConfigError(f"spec_names.yaml: {error}") from error
    searched, keys = _table(folder / "search.yaml", SearchField), _table(folder / "spec_keys.yaml", str | None)
    v3_fields = {*searched, *(f"specs.{key}.{end}" for key in keys for end in ("value", "min_value", "max_value"))}
    objects = [("", "Part")]
    for above, name in objects:  # which grows by those below, but not below keyed objects: their keys are data
        for field, rule in rules[name].fields.items() if name in rules else ():
            v3_fields.add(f"{above}{field}")
            if rule.target and not rule.keyed:
                objects.append((f"{above}{field}.", rule.target))
    loaded = Tables(load_uids(folder, own_uids), names, searched, keys, v3_fields=frozenset(v3_fields))
    schema = read_schema((folder / SCHEMA).read_text(encoding="utf-8").replace("{site}", site))
    functions = transforms.TRANSFORMS | transforms.of_tables(loaded.uids, names)
    mappings = Mappings(schema, rules, loaded, functions, places, {})
    _check(mappings, ROOTS)
    views: dict[str, Mappings] = {}
    for name, root in VIEWS.items():
        if (folder / name).is_dir():
            rules, places = _rules(folder / name, site)
            views[root] = replace(mappings, rules=rules, places=places)
            _check(views[root], (root,))
    return replace(mappings, views=views)


def _rules(folder: Path, site: str) -> tuple[dict[str, ObjectRules], dict[tuple[str, str], str]]:
    rules: dict[str, ObjectRules] = {}
    places: dict[tuple[str, str], str] = {}
    # Sorted, so that errors and the documentation do not depend on the file system.
    for file in sorted(folder.glob("*.yaml")):
        if file.name in TABLES:
            continue
        # Replaced in the text: lines stay the same, so that errors name the right ones.
        text = file.read_text(encoding="utf-8").replace("{site}", site)
        located = located_yaml.loads(text, file.name, errors.ConfigError)
        for name, raw in located.data.items():
            if name in rules:
                raise errors.ConfigError(f"{located.place((name,))}: object {name} is described twice")
            # Its fields first and one by one, so that an error names the line of its field.
            fields = (raw.get("fields") or {}) if isinstance(raw, dict) else {}
            for field, rule in fields.items():
                _convert(rule, FieldRule | str, located, (name, "fields", field))
                fields[field] = {"from": rule} if isinstance(rule, str) else rule  # a bare path is short for `from`
            rules[name] = _convert(raw, ObjectRules, located, (name,))
            places |= {(name, field): located.place((name, "fields", field)) for field in rules[name].fields}
    return rules, places


def load_uids(folder: Path, own_file: Path | None = None) -> dict[str, Uids]:
    """Return the uids of a mappings folder and of a site's own table, by kind. Raises ConfigError."""
    shipped = read_uids(folder / "uids.yaml")
    own = read_uids(own_file) if own_file else {}
    return {kind: Uids(kind, shipped.get(kind, []), own.get(kind, [])) for kind in KINDS}


def read_uids(file: Path) -> dict[str, list[KnownUid]]:
    """Read one table of uids. A uid stands for one object, but several sources are recorded with the same. Raises
    ConfigError."""
    located = located_yaml.load(file, errors.ConfigError)
    read = _table(file, list[KnownUid], located)
    for kind, entries in read.items():
        if kind not in KINDS:
            raise errors.ConfigError(f"{located.place((kind,))}: no kind {kind!r}; there are {', '.join(KINDS)}")
        first: dict[str, int] = {}
        for at, entry in enumerate(entries):
            mistake: tuple[str, str] | None = None
            if not re.fullmatch(r"[0-9a-f]{16}", entry.uid):
                mistake = "uid", f"uid {entry.uid[:40]!r} is not 16 hex digits in small letters"
            elif not entry.name.strip():
                mistake = "name", "name is empty; give the name that v3 sent"
            elif entry.id is not None and not re.fullmatch(r"[0-9]{1,12}", entry.id):
                mistake = "id", f"id {entry.id[:40]!r} is not the service's numeric id, in quotes"
            if mistake:
                raise errors.ConfigError(f"{located.place((kind, at, mistake[0]))}: {mistake[1]}")
            earlier = first.setdefault(entry.uid, at)
            if earlier != at and kind != "Source":
                line = located.place((kind, earlier))
                raise errors.ConfigError(f"{located.place((kind, at))}: uid {entry.uid} is already given in {line}")
    return read


def _table(file: Path, kind: Any, read: located_yaml.LocatedYaml | None = None) -> dict[str, Any]:
    """Convert one table, entry by entry, so that an error names the line of its entry."""
    located = read or located_yaml.load(file, errors.ConfigError)
    entries = _convert(located.data, dict[str, Any], located, ())
    return {name: _convert(entry, kind, located, (name,)) for name, entry in entries.items()}


def _convert(raw: Any, kind: Any, located: located_yaml.LocatedYaml, at: Trail) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        message, _, tail = str(error).rpartition(" - at `")
        # A key of a mapping with arbitrary keys is written as `[...]`: the path ends before it.
        steps: Trail = tuple(name or int(index) for name, index in _STEP.findall(tail.partition("[...]")[0]))
        field = re.search("unknown field `(.*)`", str(error)) if "[...]" not in tail else None
        place = located.place((*at, *steps, field[1]) if field else (*at, *steps))
        raise errors.ConfigError(f"{place}: {message or error}") from error


def _check(mappings: Mappings, roots: tuple[str, ...]) -> None:
    """Raise ConfigError for a rule without exactly one source, an unknown type, or an object that nothing uses."""
    used = {*roots, "Manufacturer"}
    firsts = {name: place for (name, _), place in reversed(mappings.places.items())}  # of the first field
    for name, rules in mappings.rules.items():
        if not {rules.reads, rules.under or rules.reads} <= mappings.schema.keys():
            raise errors.ConfigError(f"{firsts[name]}: {name} reads a type the schema does not have")
        for field, rule in rules.fields.items():
            place = mappings.places[name, field]
            used |= {rule.target} if rule.target else set()
            # Fields become names in the source of the mapping function; a leading __ is for `__class__`.
            if not field.isidentifier() or field.startswith("__"):
                raise errors.ConfigError(f"{place}: {field!r} is not a field name: use letters, digits and _")
            mistake = ": `keyed` and `key` go together" if bool(rule.keyed) != bool(rule.key) else None
            if rule.always is not msgspec.UNSET and not rule.why:
                mistake = " is always the same; say in `why` what for"
            if [rule.paths is None, rule.always is msgspec.UNSET, rule.none is None].count(False) != 1:
                mistake = " needs exactly one of `from`, `always` and `none`"
            if mistake:
                raise errors.ConfigError(f"{place}: {name}.{field}{mistake}")
    for name in mappings.rules:
        if name not in used:
            raise errors.ConfigError(f"{firsts[name]}: nothing uses the object {name}")
