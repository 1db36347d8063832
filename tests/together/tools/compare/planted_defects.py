"""Defects of mapping rules, for mutation tests of comparisons: another path, `none`, another transform, order or class.

Reads the YAML files and the schema itself. Every defect fits the schema, so the service starts with it; whether a
client can see the defect depends on the data.
"""

import copy
import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import graphql
import yaml

TABLES = ("uids.yaml", "spec_names.yaml", "spec_keys.yaml", "search.yaml")  # no rules for fields
NONE = "planted"
UIDS = ("brand_uid", "manufacturer_uid", "seller_uid", "category_uid")  # transforms that take the same values
OF_TYPE = {"Int": "text", "String": "subtypes"}  # a transform that takes a value and makes another of it
TOP = {"Part", "Brand", "Manufacturer", "Seller", "Category"}  # what endpoints answer with
ROOTS = {"", "items", "item", "results"}  # where such an answer holds them
KNOWN_BY = {  # fields by which elements of a list are known, and objects are asked for
    *("uid", "url", "listing_url", "sku", "mpn", "name", "value", "key", "id", "seller"),
    *("swatch_image", "small_image", "medium_image", "large_image"),
}
_PLAIN = re.compile(r"\^?\w+(\.\w+)*")


class Defect(NamedTuple):
    """One changed rule: `wrong` stands for that of the field; the field `__class__` is the object's own class."""

    kind: str
    file: str
    object: str
    field: str
    wrong: Any

    def __str__(self) -> str:
        return f"{self.kind} at {self.object}.{self.field}: {json.dumps(self.wrong)}"


class MappingFolder:
    """The rules of a folder of mappings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = (file for file in sorted(folder.glob("*.yaml")) if file.name not in TABLES)
        self._files: dict[str, Any] = {file.name: yaml.safe_load(file.read_text("utf-8")) for file in files}
        self.objects = {name: rules for objects in self._files.values() for name, rules in objects.items()}
        text = (folder / "schema.graphql").read_text("utf-8").replace("{site}", "octopart")
        self._schema = graphql.build_schema(text, assume_valid=True)

    def holders(self, name: str) -> set[str]:
        """The fields that hold an object: `offers` for PartOffer."""
        return {
            field
            for rules in self.objects.values()
            for field, rule in rules["fields"].items()
            if isinstance(rule, dict) and name in (rule.get("is"), rule.get("each"), rule.get("keyed"))
        }

    def defects(self, seed: int) -> list[Defect]:
        """All defects, shuffled by the seed, kinds alternating."""
        rng = random.Random(seed)
        by_kind: defaultdict[str, list[Defect]] = defaultdict(list)
        for defect in self._all():
            by_kind[defect.kind].append(defect)
        for each in by_kind.values():
            rng.shuffle(each)
        turns = ((turn, kind, defect) for kind, made in by_kind.items() for turn, defect in enumerate(made))
        return [defect for _, _, defect in sorted(turns, key=lambda each: each[:2])]

    def around(self, name: str) -> set[str]:
        """The fields that hold an object, or hold what holds it."""
        found, left = set[str](), [name]
        while left:
            inner = left.pop()
            outer = [each for each, rules in self.objects.items() if inner in _targets(rules)]
            left += [each for each in outer if not self.holders(inner) <= found]
            found |= self.holders(inner)
        return found

    def write(self, defect: Defect, folder: Path) -> None:
        """Write the mappings with one defect to another folder, without objects that are no longer used."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._folder, folder)
        files = copy.deepcopy(self._files)
        rules = files[defect.file][defect.object]
        if defect.field == "__class__":
            rules["class"] = defect.wrong
        else:
            rules["fields"][defect.field] = defect.wrong
        while unused := _unused(files):
            for objects in files.values():
                for name in unused & objects.keys():
                    del objects[name]
        for name, objects in files.items():
            text = yaml.safe_dump(objects, allow_unicode=True, sort_keys=False, width=1000)
            (folder / name).write_text(text, "utf-8")

    def _all(self) -> Iterator[Defect]:
        for file, objects in self._files.items():
            for name, rules in objects.items():
                if rules.get("class") != "":
                    yield Defect("class", file, name, "__class__", "Planted")
                for field, rule in rules["fields"].items():
                    whole = {"from": rule} if isinstance(rule, str) else rule
                    for kind, wrong in self._wrong(name, field, whole):
                        yield Defect(kind, file, name, field, wrong)

    def _wrong(self, name: str, field: str, rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        included = {"include": True} if rule.get("include") else {}
        if "always" in rule:
            yield "constant", {**rule, "always": NONE}
        if "none" not in rule:
            yield "none", {"none": NONE, **included, **self._emptied(rule)}
        if not included and rule.get("feature") is None:
            yield "hidden", {**rule, "include": True}
        if "only" in rule:
            yield "only", {each: value for each, value in rule.items() if each != "only"}
        if "key" in rule:
            yield "key", {**rule, "key": {**rule["key"], "from": _swapped(rule["key"]["from"])}}
        if "from" in rule:
            yield from self._paths(name, field, rule)
            yield from self._transforms(name, rule)
            yield from self._lists(rule)

    def _emptied(self, rule: dict[str, Any]) -> dict[str, Any]:
        return {"empty": [] if rule.get("each") else {}} if rule.keys() & {"each", "keyed"} else {}

    def _paths(self, name: str, field: str, rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        kind = self._kind(name, rule["from"])
        if kind is None or rule.keys() & {"is", "each", "keyed"}:
            return
        for other, path in self._plain(name):
            if other != field and path != rule["from"] and self._kind(name, path) == kind:
                yield "path", {**rule, "from": path}

    def _transforms(self, name: str, rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        through, kind = rule.get("through"), self._kind(name, rule["from"])
        if through in UIDS:
            yield from (("transform", {**rule, "through": other}) for other in UIDS if other != through)
        elif through and kind is not None:
            yield "transform", {each: value for each, value in rule.items() if each != "through"}
        elif kind in OF_TYPE and not rule.keys() & {"is", "each", "keyed"}:
            yield "transform", {**rule, "through": OF_TYPE[kind]}

    def _lists(self, rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        target = rule.get("is") or rule.get("each")
        for other in self._alike(target) if target else ():
            yield "target", {**rule, "is" if "is" in rule else "each": other}
        if "order" in rule:
            yield "order", {each: value for each, value in rule.items() if each != "order"}
        elif "each" in rule:
            paths = [path for _, path in self._plain(rule["each"]) if not path.startswith("^")]
            yield from (("order", {**rule, "order": {"from": path}}) for path in paths[:1])

    def _alike(self, target: str) -> list[str]:
        """Other objects of the same type of the service, with nothing in them that may not be recorded."""
        rules, read = self.objects[target], {json.dumps(path) for path in self._read(target)}
        return [
            other
            for other, each in self.objects.items()
            if other != target
            and (each["reads"], each.get("under")) == (rules["reads"], rules.get("under"))
            and each.get("class") != ""
            and not any(_targets(each))
            and {json.dumps(path) for path in self._read(other)} <= read
        ]

    def _read(self, name: str) -> list[Any]:
        rules = self.objects[name]["fields"].values()
        return [rule if isinstance(rule, str) else rule.get("from") for rule in rules]

    def _plain(self, name: str) -> Iterator[tuple[str, str]]:
        """The fields of an object that always show a single path, and these paths: they are in every recording."""
        for field, rule in self.objects[name]["fields"].items():
            whole = {"from": rule} if isinstance(rule, str) else rule
            if "from" in whole and not whole.keys() & {"include", "feature"} and self._kind(name, whole["from"]):
                yield field, whole["from"]

    def _kind(self, name: str, path: Any) -> str | None:
        """The scalar type that a plain path leads to."""
        if not isinstance(path, str) or not _PLAIN.fullmatch(path):
            return None
        rules = self.objects[name]
        kind: Any = self._schema.type_map.get(rules.get("under") if path.startswith("^") else rules["reads"])
        for step in path.removeprefix("^").split("."):
            if not isinstance(kind, graphql.GraphQLObjectType) or step not in kind.fields:
                return None
            kind = graphql.get_named_type(kind.fields[step].type)
        return kind.name if isinstance(kind, graphql.GraphQLScalarType) else None


def is_at_field(path: str, kind: str, defect: Defect, mappings: MappingFolder) -> bool:
    """Return true if a difference is at the field, or at the element that the field identifies, which is then another,
    or not found by its uid.
    """
    steps = re.findall(r'\["[^"]*"\]|[^.\[\]]+', path.replace("[*]", ""))
    holders = mappings.holders(defect.object)
    before = ["", "", *steps]
    name = defect.field.replace("{site}", "octopart")
    if defect.field in KNOWN_BY and kind in ("missing", "extra", "order", "status"):
        around = {"(status)", *mappings.around(defect.object), *ROOTS}
        if (steps or [""])[-1] in around:
            return True
    return any(
        step == name and (holders & {before[at], before[at + 1]} or before[at + 1] in ROOTS)
        for at, step in enumerate(steps)
    )


def _swapped(paths: list[str]) -> list[str]:
    """Plain paths in the other order; what leads to objects stays, a transform cannot take it for a text."""
    plain = [path for path in paths if _PLAIN.fullmatch(path)]
    return [plain.pop() if _PLAIN.fullmatch(path) else path for path in paths]


def _targets(rules: dict[str, Any]) -> set[str]:
    each = (rule for rule in rules["fields"].values() if isinstance(rule, dict))
    return {rule[way] for rule in each for way in ("is", "each", "keyed") if way in rule}


def _unused(files: dict[str, Any]) -> set[str]:
    objects = {name: rules for each in files.values() for name, rules in each.items()}
    used = {target for name, rules in objects.items() for target in _targets(rules) - {name}}
    return objects.keys() - used - TOP
