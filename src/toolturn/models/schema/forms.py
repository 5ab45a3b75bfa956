"""Small changes of schemas that are already in a profile's form."""

from __future__ import annotations

from .source import Json, unique


def with_null(node: Json, nulls: str) -> Json:
    """The same schema, taking null as well."""
    if takes_null(node):
        return node
    if nulls == "nullable":
        target = node["anyOf"][0] if "anyOf" in node else node
        target["nullable"] = True
    elif "anyOf" in node:
        node["anyOf"].append({"type": "null"})
    elif "$ref" in node:
        return {"anyOf": [node, {"type": "null"}]}
    else:
        kinds = node["type"]
        node["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]
        if "enum" in node:
            node["enum"] = [*node["enum"], None]
    return node


def takes_null(node: Json) -> bool:
    """Whether a schema takes null."""
    kinds = node.get("type")
    if node.get("nullable") or kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    if "anyOf" in node:
        return any(takes_null(branch) for branch in node["anyOf"])
    return kinds is None and "$ref" not in node


def enums_joined(branches: list[Json]) -> list[Json]:
    """Branches, those that are enumerations of one type as one, and each once."""
    made: list[Json] = []
    for branch in branches:
        earlier = next(
            (
                other
                for other in made
                if other.keys() == branch.keys() == {"type", "enum"} and other["type"] == branch["type"]
            ),
            None,
        )
        if earlier is not None:
            earlier["enum"] = unique([*earlier["enum"], *branch["enum"]])
        elif branch not in made:
            made.append(branch)
    return made
