"""Packages as they lie there once they are installed: a module and what its metadata says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent


def install(
    folder: Path,
    package: str,
    code: str = "",
    *,
    toolboxes: Mapping[str, str] | None = None,
    models: Mapping[str, str] | None = None,
    personas: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Put a package of one module into a folder that stands in the path.

    Args:
        folder: The folder.
        package: Its name; the module's has ``_`` for ``-``.
        code: What is in the module.
        toolboxes: Entry points: names, and the attributes of the module they mean.
        models: As ``toolboxes``.
        personas: As ``toolboxes``.
        version: Its version.
    """
    module = package.replace("-", "_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(dedent(code), encoding="utf-8")
    lines = []
    for kind, given in (("toolboxes", toolboxes), ("models", models), ("personas", personas)):
        lines += [f"[toolturn.{kind}]", *(f"{name} = {module}:{target}" for name, target in (given or {}).items())]
    metadata(folder, package, "\n".join(lines), version)


def metadata(folder: Path, package: str, entry_points: str, version: str = "1.0") -> None:
    """Write the metadata of a package.

    Args:
        folder: The folder.
        package: Its name.
        entry_points: The text of its entry points.
        version: Its version.
    """
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


TOOLS = '''
from toolturn import tool

@tool(effect="none")
def hello(name: str = "you") -> str:
    """Say hello."""
    return f"hello {name}"

def tools(**config):
    return [hello]
'''
"""A module with a toolbox."""
