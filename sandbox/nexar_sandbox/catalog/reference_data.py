"""Reference data of the catalog: companies, sellers, the category tree, attributes.

It grows while the catalog is loaded (a user's file may name new manufacturers and categories) and is read-only
afterwards. It holds no parts.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from nexar_sandbox.catalog import matching, records, units

# Above every real id, so that a new company or category cannot be mistaken for a real one.
_FIRST_NEW_ID = 990_001


class ReferenceData:
    def __init__(
        self,
        companies: Iterable[records.Company],
        categories: Iterable[records.Category],
        attributes: Iterable[records.CatalogAttribute],
    ) -> None:
        self.companies = {company.id: company for company in companies}
        # Their order is that of the file; what is added later is no seller.
        self.sellers = tuple(company for company in self.companies.values() if "seller" in company.roles)
        self.categories = {category.id: category for category in categories}
        self.attributes = {attribute.shortname: attribute for attribute in attributes}
        self._maker_by_name = {
            matching.normalize(name): company.id
            for company in reversed(self.companies.values())
            if "manufacturer" in company.roles
            for name in (*company.aliases, company.name)
        }
        self._category_by_name = {
            matching.normalize(category.name): category.id for category in self.categories.values()
        }
        self._children: dict[str, list[str]] = {}
        for category in self.categories.values():
            self._add_child(category)

    @property
    def manufacturers(self) -> tuple[records.Company, ...]:
        return tuple(company for company in self.companies.values() if "manufacturer" in company.roles)

    def root(self) -> records.Category:
        """The category that is its own parent."""
        return next(category for category in self.categories.values() if category.id == category.parent_id)

    def maker(self, text: str) -> records.Company:
        """The manufacturer with this id, name or alias; created if the name is new. LookupError for an unknown id."""
        if text.isdecimal():
            return self._as_manufacturer(self.companies[text])
        maker_ = self._maker_by_name.get(matching.normalize(text))
        return self.companies[maker_] if maker_ else self._new_maker(text)

    def category(self, text: str) -> records.Category:
        """The category with this id or name; created under the root if new. LookupError for an unknown id."""
        if text.isdecimal():
            return self.categories[text]
        existing = self._category_by_name.get(matching.normalize(text))
        return self.categories[existing] if existing else self._new_category(text, self.root())

    def children(self, id_: str) -> tuple[records.Category, ...]:
        return tuple(self.categories[child] for child in self._children.get(id_, ()))

    def ancestors(self, id_: str) -> tuple[records.Category, ...]:
        """The categories from the root to the parent: root first, parent last; empty for the root."""
        above: list[records.Category] = []
        current = self.categories[id_]
        while current.parent_id != current.id:
            current = self.categories[current.parent_id]
            above.append(current)
        return tuple(reversed(above))

    def descendants(self, id_: str) -> tuple[str, ...]:
        """The ids of the category itself and of everything under it."""
        return (id_, *(below for child in self._children.get(id_, ()) for below in self.descendants(child)))

    def _new_maker(self, name: str) -> records.Company:
        slug = f"/manufacturers/{_slug(name)}"
        company = records.Company(_next_id(self.companies), name, slug=slug, roles=frozenset({"manufacturer"}))
        self.companies[company.id] = company
        self._maker_by_name[matching.normalize(name)] = company.id
        return company

    def _new_category(self, name: str, parent: records.Category) -> records.Category:
        category = records.Category(_next_id(self.categories), parent.id, name, f"{parent.path}/{_slug(name)}")
        self.categories[category.id] = category
        self._category_by_name[matching.normalize(name)] = category.id
        self._add_child(category)
        return category

    def _as_manufacturer(self, company: records.Company) -> records.Company:
        if "manufacturer" not in company.roles:
            company = msgspec.structs.replace(company, roles=company.roles | {"manufacturer"})
            self.companies[company.id] = company
        return company

    def _add_child(self, category: records.Category) -> None:
        if category.parent_id != category.id:
            self._children.setdefault(category.parent_id, []).append(category.id)


def _next_id(used_ids: Iterable[str]) -> str:
    return str(max(_FIRST_NEW_ID, *(int(id_) + 1 for id_ in used_ids)))


def _slug(name: str) -> str:
    return "-".join(matching.words(name)).lower()


def read(data: Path) -> ReferenceData:
    """The companies, categories and attributes of the shipped files in the folder `data`. Raises
    records.CatalogError."""
    path = data / "companies.jsonl"
    companies = []
    for number, company in records.read_lines(path, records.Company):
        if company.currency not in units.PER_DOLLAR:
            raise records.CatalogError(f"{path}:{number}: currency {company.currency!r} has no exchange rate")
        companies.append(company)
    return ReferenceData(
        companies,
        [line for _, line in records.read_lines(data / "categories.jsonl", records.Category)],
        [line for _, line in records.read_lines(data / "attributes.jsonl", records.CatalogAttribute)],
    )
