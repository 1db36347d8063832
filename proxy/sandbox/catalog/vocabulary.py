"""Who and what the parts refer to: companies, sellers, the category tree, attributes.

It grows while the catalog is loaded (a user's file and generated parts may name new makers and categories)
and is only read afterwards. It knows no parts.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from proxy.sandbox.catalog import listing, matching, records

# Above every real id, so that a made-up company or category cannot be taken for a real one.
_FIRST_NEW_ID = 990_001
_NOT_SLUG = re.compile(r"[\W_]+")


class Vocabulary:
    """Companies, sellers, categories and attributes by id and by name."""

    def __init__(
        self,
        companies: Iterable[records.Company],
        sellers: Iterable[listing.Seller],
        categories: Iterable[records.Category],
        attributes: Iterable[records.Attribute],
    ) -> None:
        self.companies = {company.id: company for company in companies}
        self.sellers = tuple(sellers)
        self.categories = {category.id: category for category in categories}
        self.attributes = {attribute.shortname: attribute for attribute in attributes}
        self._makers = {
            matching.normalise(name): company.id
            for company in reversed(self.companies.values())
            if "manufacturer" in company.roles
            for name in (*company.aliases, company.name)
        }
        self._named = {matching.normalise(category.name): category.id for category in self.categories.values()}
        self._children: dict[str, list[str]] = {}
        for category in self.categories.values():
            self._hang(category)

    def root(self) -> records.Category:
        """The category that is its own parent."""
        return next(category for category in self.categories.values() if category.id == category.parent_id)

    def maker(self, text: str) -> records.Company:
        """The maker with this id, name or alias; created where the name is new. LookupError for an unknown
        id."""
        if text.isdecimal():
            return self._role(self.companies[text])
        known = self._makers.get(matching.normalise(text))
        return self.companies[known] if known else self._new_maker(text)

    def category(self, text: str) -> records.Category:
        """The category with this id or name; created under the root where new. LookupError for an unknown
        id."""
        if text.isdecimal():
            return self.categories[text]
        known = self._named.get(matching.normalise(text))
        return self.categories[known] if known else self._new_category(text, self.root())

    def branch(self, *names: str) -> records.Category:
        """The category found by name, the last of `names`; missing ones are created, each under the one
        before."""
        here = self.root()
        for name in names:
            known = self._named.get(matching.normalise(name))
            here = self.categories[known] if known else self._new_category(name, here)
        return here

    def children(self, id_: str) -> tuple[records.Category, ...]:
        """The direct children, in the order of the files."""
        return tuple(self.categories[child] for child in self._children.get(id_, ()))

    def ancestors(self, id_: str) -> tuple[records.Category, ...]:
        """The way from the root to the parent: root first, parent last; empty for the root."""
        way: list[records.Category] = []
        here = self.categories[id_]
        while here.parent_id != here.id:
            here = self.categories[here.parent_id]
            way.append(here)
        return tuple(reversed(way))

    def descendants(self, id_: str) -> tuple[str, ...]:
        """The ids of the category itself and of everything under it."""
        return (id_, *(below for child in self._children.get(id_, ()) for below in self.descendants(child)))

    def _new_maker(self, name: str) -> records.Company:
        slug = f"/manufacturers/{_slug(name)}"
        plain = dict.fromkeys(("is_verified", "is_broker", "is_distributor_api", "is_octocart_supported"), False)
        company = records.Company(
            _next_id(self.companies), name, (), None, None, slug, **plain, roles=frozenset({"manufacturer"})
        )
        self.companies[company.id] = company
        self._makers[matching.normalise(name)] = company.id
        return company

    def _new_category(self, name: str, parent: records.Category) -> records.Category:
        category = records.Category(_next_id(self.categories), parent.id, name, f"{parent.path}/{_slug(name)}")
        self.categories[category.id] = category
        self._named[matching.normalise(name)] = category.id
        self._hang(category)
        return category

    def _role(self, company: records.Company) -> records.Company:
        if "manufacturer" not in company.roles:
            company = replace(company, roles=company.roles | {"manufacturer"})
            self.companies[company.id] = company
        return company

    def _hang(self, category: records.Category) -> None:
        if category.parent_id != category.id:
            self._children.setdefault(category.parent_id, []).append(category.id)


def _next_id(taken: Iterable[str]) -> str:
    return str(max(_FIRST_NEW_ID, *(int(id_) + 1 for id_ in taken)))


def _slug(name: str) -> str:
    return _NOT_SLUG.sub("-", name.lower()).strip("-")
