"""Fields that a plan must include: which feature each needs (contract graphql.md §6), and the guard
before its resolver.

The text of the refusal is ours. Without LIFECYCLE no field is refused: the lifecycle properties are left
out of `specs` and `specAggs`. INVENTORY_HISTORY is a feature to which the schema has no field.
"""

from typing import Any

from graphql import GraphQLFieldResolver

from proxy.sandbox.graphql import context, problems

NEEDS = {
    ("SupPart", "estimatedFactoryLeadDays"): "LEAD_TIME",
    ("SupPart", "specs"): "TECH_SPECS",
    ("SupPartResultSet", "specsViewAttributeGroups"): "TECH_SPECS",
    ("SupPartResultSet", "specAggs"): "TECH_SPECS",
    ("SupPart", "documentCollections"): "DATASHEETS",
    ("SupPart", "bestDatasheet"): "DATASHEETS",
    ("SupPart", "referenceDesigns"): "DATASHEETS",
    ("SupPart", "cad"): "CAD_MODELS",
    # Internal, but nobody is to get around the plan by it.
    ("SupPartExtras", "datasheetUrls"): "DATASHEETS",
    ("SupPartExtras", "parameters"): "TECH_SPECS",
    ("SupPartExtras", "technicalDetails"): "TECH_SPECS",
    ("SupPartExtras", "alternatives"): "SIMILAR_PARTS",
    # The contract names the features of these three, not their fields.
    ("SupPart", "similarParts"): "SIMILAR_PARTS",
    ("Query", "supSuggest"): "SUGGESTIONS",
    ("Query", "supSpellingCorrection"): "SPELLING_CORRECTIONS",
}


def is_gated(type_name: str, field_name: str) -> bool:
    """Whether the field needs a feature."""
    return (type_name, field_name) in NEEDS


def guarded(type_name: str, field_name: str, resolver: GraphQLFieldResolver) -> GraphQLFieldResolver:
    """The resolver behind its gate; itself where there is none."""
    feature = NEEDS.get((type_name, field_name))
    if feature is None:
        return resolver

    def resolve(source: Any, info: context.Info, **arguments: Any) -> Any:
        account = info.context.account
        if account is None or feature not in account.features:
            raise problems.ServiceError(problems.feature(feature, f"{type_name}.{field_name}"))
        return resolver(source, info, **arguments)

    return resolve
