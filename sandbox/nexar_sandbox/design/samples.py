"""Sample workspaces of a new sandbox, read from samples.toml, with parts of the catalog as components."""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nexar_sandbox.catalog import records as catalog_records
from nexar_sandbox.catalog import store
from nexar_sandbox.design import resources
from nexar_sandbox.design.resources import Record

_SAMPLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
DAY = 86_400
# Distributors of a part choice, and price breaks of each.
SUPPLIERS, BREAKS = 3, 4
CORNER = {"x": 0, "y": 0}


def stable_id(*words: object) -> str:
    """Return an opaque id that is the same for the same arguments."""
    return hashlib.blake2b("\n".join(map(str, words)).encode(), digest_size=9).hexdigest()


def stamps(by: str, at: str) -> Record:
    """Return author and time, by all names that records have for them."""
    authors = dict.fromkeys(("createdById", "modifiedById", "updatedById"), by)
    return authors | dict.fromkeys(("createdAt", "modifiedAt", "updatedAt"), at)


def create(tables: dict[str, dict[str, Record]], catalog: store.Catalog, now: float) -> None:
    """Create the sample workspaces; all times are before `now`, in seconds since 1970."""
    for number, sample in enumerate(_SAMPLES["workspaces"]):
        _Workspace(tables, catalog, now, sample, is_default=number == 0)


class _Workspace:
    """Creates one workspace. Every part that a project uses becomes a component of its library."""

    def __init__(
        self, tables: dict[str, dict[str, Record]], catalog: store.Catalog, now: float, sample: Any, *, is_default: bool
    ) -> None:
        self._tables, self._catalog, self._now = tables, catalog, now
        self._id = stable_id("workspace", sample["slug"])
        names = [f"{first}.{last}".lower() for first, last in sample["users"]]
        self._user_ids = [stable_id("user", name) for name in names]
        self._url = f"https://{sample['slug']}.365.example"
        groups = [{"id": stable_id(self._id, name), "name": name} for name in ("Engineers", "Administrators")]
        self._put(
            "workspaces",
            id=self._id,
            name=sample["name"],
            url=self._url,
            authId=stable_id(self._id, "auth"),
            description=sample["description"],
            isDefault=is_default,
            region=sample["region"],
            groups=groups,
            library={
                **self._stamps(900),
                "workspaceId": self._id,
                "name": f"{sample['name']} Library",
                "description": f"Components of {sample['name']}",
                "version": "1.0",
            },
        )
        for (first, last), name, id_ in zip(sample["users"], names, self._user_ids, strict=True):
            self._put(
                "users",
                id=id_,
                userName=name,
                email=f"{name}@{sample['slug']}.example",
                firstName=first,
                lastName=last,
                workspaceIds=[self._id],
                groupIds=[groups[0]["id"]],
            )
        for number, (name, description, sheets) in enumerate(sample["projects"]):
            self._create_project(number, name, description, sheets)

    def _put(self, table: str, **fields: Any) -> Record:
        record = self._tables[table][fields["id"]] = {"workspaceId": self._id, **fields}
        return record

    def _stamps(self, days: int, author: int = 0) -> Record:
        return stamps(self._user_ids[author % len(self._user_ids)], resources.rfc3339(self._now - days * DAY))

    def _create_project(self, number: int, name: str, description: str, sheets: Sequence[str]) -> None:
        """Create a project: its sheets and a board, two variants, two releases, comment threads and tasks."""
        id_ = stable_id(self._id, "project", name)
        documents = [_document(id_, f"{sheet}.SchDoc") for sheet in sheets]
        board = _document(id_, f"{name}.PcbDoc")
        items = self._items(id_, number, sheets, documents)
        leader = self._tables["users"][self._user_ids[0]]
        commits = [
            {
                "revisionId": stable_id(id_, "commit", place),
                "message": message,
                "author": leader["userName"],
                "createdAt": resources.rfc3339(self._now - (20 + 60 * place) * DAY),
                "files": [{"path": document["documentName"]} for document in documents],
            }
            for place, message in enumerate(_SAMPLES["commits"])
        ]
        self._put(
            "projects",
            **self._stamps(400),
            id=id_,
            projectId=stable_id(id_, "guid"),
            workspaceUrl=self._url,
            url=f"{self._url}/designs/{id_}",
            name=name,
            description=description,
            parameters=[
                {"name": "Client", "value": "In-house"},
                {"name": "Engineer", "value": f"{leader['firstName']} {leader['lastName']}"},
            ],
            revisions=commits,
            variants=self._variants(id_, id_, items, documents, board),
        )
        for release in (1, 2):
            release_id = stable_id(id_, "release", release)
            self._put(
                "releases",
                id=release_id,
                projectId=id_,
                releaseId=f"R{release:03d}",
                description="Prototypes" if release == 1 else "First series",
                createdAt=resources.rfc3339(self._now - (120 - 40 * release) * DAY),
                # A release keeps its bills of materials, whatever the project becomes.
                variants=self._variants(id_, release_id, items, documents, board),
            )
        for place, item in enumerate(items[:: len(items) // 3][:3], 1):
            self._create_thread(id_, place, item, documents)
        for place, (task, text) in enumerate(_SAMPLES["tasks"], 1):
            self._put(
                "tasks",
                **self._stamps(25, place),
                id=stable_id(id_, "task", place),
                projectId=id_,
                refId=f"{''.join(word[0] for word in name.split())}-{place}",
                name=task,
                description=text,
                priority=("LOW", "MEDIUM", "HIGH")[place % 3],
                status=("TO_DO", "IN_PROGRESS", "RESOLVED")[place % 3],
                assigneeId=self._user_ids[0],
                comments=[],
            )

    def _items(self, project_id: str, number: int, sheets: Sequence[str], documents: Sequence[Record]) -> list[Record]:
        """Create the design items of all sheets; designators are numbered over them."""
        numbers: Counter[str] = Counter()
        used: Counter[str] = Counter()
        items = []
        for sheet, document in zip(sheets, documents, strict=True):
            for prefix, category, parts, pieces in _SAMPLES["sheets"][sheet]:
                for component in self._components(category, number, used, parts):
                    for _ in range(pieces):
                        numbers[prefix] += 1
                        items.append(self._item(project_id, f"{prefix}{numbers[prefix]}", component, document))
        return items

    def _item(self, project_id: str, designator: str, component: Record, document: Record) -> Record:
        return self._put(
            "items",
            id=stable_id(project_id, "item", designator),
            projectId=project_id,
            sheetId=document["documentId"],
            designator=designator,
            componentId=component["id"],
            comment=component["comment"],
            description=component["description"],
            footprintName=component["footprintName"],
            rotation=90.0,
            parameters=component["parameters"],
        )

    def _components(self, category: str, number: int, used: Counter[str], count: int) -> list[Record]:
        """Components of the category whose path ends with `category`, in each project and sheet others."""
        found = next(each for each in self._catalog.reference.categories.values() if each.path.endswith(category))
        inside = catalog_records.SearchConditions((("category_id", (found.id,)),))
        ids = self._catalog.search("", inside).ids
        first = number * 20 + used[category]
        used[category] += count
        chosen = dict.fromkeys(ids[(first + place) % len(ids)] for place in range(count))
        return [self._component(part) for part in map(self._catalog.part, chosen) if part is not None]

    def _component(self, part: catalog_records.Part) -> Record:
        id_ = stable_id(self._id, "component", part.id)
        existing = self._tables["components"].get(id_)
        cases = (spec.display_value for spec in part.specs if spec.attribute.shortname == "case_package")
        return existing or self._put(
            "components",
            **self._stamps(300),
            **component_fields(id_),
            folderId=self._folder(part.category)["id"] if part.category else None,
            name=f"CMP-{len(self._tables['components']) + 1:05d}-1",
            comment=part.mpn,
            description=part.short_description,
            footprintName=next(cases, part.mpn),
            parameters=[{"name": spec.attribute.name, "value": spec.display_value} for spec in part.specs],
            manufacturerParts=_part_choices(part, self._catalog),
        )

    def _folder(self, category: catalog_records.Category) -> Record:
        id_ = stable_id(self._id, "folder", category.path)
        return self._tables["folders"].get(id_) or self._put(
            "folders",
            **self._stamps(850),
            id=id_,
            name=category.name,
            path=f"Components\\{category.name}",
            description=f"{category.name} in use",
            folderType="COMPONENT_LIBRARY",
        )

    def _variants(
        self, project_id: str, owner_id: str, items: Sequence[Record], documents: Sequence[Record], board: Record
    ) -> list[Record]:
        """Return the variants of a project or release, each with its own bill of materials."""
        found = []
        for name in ("Base", "Lite"):
            bom_id = stable_id(owner_id, "bom", name)
            lines: dict[str, list[Record]] = {}
            for item in items:
                lines.setdefault(item["componentId"], []).append(item)
            bom_items = [
                _bom_item(same, is_fitted=name == "Base" or place % 10 != 3)
                for place, same in enumerate(lines.values())
            ]
            self._put("boms", id=bom_id, projectId=project_id, variantName=name, items=bom_items)
            found.append({"name": name, "bomId": bom_id, "pcb": board, "schematics": documents})
        return found

    def _create_thread(self, project_id: str, number: int, item: Record, documents: Sequence[Record]) -> None:
        document = next(each for each in documents if each["documentId"] == item["sheetId"])
        id_ = stable_id(project_id, "thread", number)
        comment = {"commentId": stable_id(id_, "comment"), "text": _SAMPLES["comments"][number - 1], "mentions": []}
        self._put(
            "threads",
            **self._stamps(30, number),
            id=id_,
            projectId=project_id,
            threadNumber=number,
            status=0,
            context={
                "documentId": document["documentId"],
                "objectId": item["id"],
                "area": {"pos1": CORNER, "pos2": CORNER},
            },
            documentName=document["documentName"],
            assignedToId=self._user_ids[0],
            comments=[{**self._stamps(30, number), **comment}],
        )


def _document(project_id: str, name: str) -> Record:
    return {"projectId": project_id, "documentId": stable_id(project_id, "document", name), "documentName": name}


def _bom_item(same: Sequence[Record], *, is_fitted: bool) -> Record:
    instances = [{"designator": item["designator"], "isFitted": is_fitted} for item in same]
    return {"componentId": same[0]["componentId"], "quantity": len(instances), "bomItemInstances": instances}


def component_fields(id_: str) -> Record:
    """Fields of a component in its first revision."""
    return {
        "id": id_,
        "itemInternalId": stable_id(id_, "item"),
        "revisionId": stable_id(id_, "revision", 1),
        "isManaged": True,
        "lifeCycleState": {
            "lifeCycleStateId": stable_id("state", "new"),
            "name": "New From Design",
            "description": "Being worked on",
            "stateIndex": 0,
            "isAllowedInDesign": True,
        },
    }


def _part_choices(part: catalog_records.Part, catalog: store.Catalog) -> list[Record]:
    """Return the part itself, and parts of other makers with the same MPN, as part choices."""
    others = [other for id_ in part.similar_ids if (other := catalog.part(id_)) is not None and other.mpn == part.mpn]
    return [part_choice(each, catalog, place) for place, each in enumerate((part, *others), 1)]


def part_choice(part: catalog_records.Part, catalog: store.Catalog, priority: int) -> Record:
    listed = [seller for seller in catalog.sellers_of(part) if seller.offers and not seller.is_broker]
    return {
        "companyName": part.manufacturer.name,
        "partNumber": part.mpn,
        "priority": priority,
        "octopartId": part.id,
        "supplierParts": [_supplier(seller.company.name, seller.offers[0]) for seller in listed[:SUPPLIERS]],
    }


def _supplier(name: str, offer: catalog_records.Offer) -> Record:
    prices = [
        {"currency": step.currency or "USD", "price": step.price, "breakQuantity": step.quantity}
        for step in offer.prices[:BREAKS]
    ]
    stock = {"locationName": offer.eligible_region or "", "quantity": max(offer.inventory_level, 0)}
    return {"companyName": name, "partNumber": offer.sku, "prices": prices, "stocks": [stock]}
