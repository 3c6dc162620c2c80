"""Import-linter contract that lists the permitted imports of a package; all others are violations.

A list of forbidden imports misses new modules. See ``[tool.importlinter]`` in pyproject.toml.
"""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowedImportsContract(Contract):
    """The direct imports of ``source_modules`` and their submodules, except those of ``exempt_modules``.

    ``allowed_modules`` are packages: a listed package allows its submodules. Modules of the same room may always be
    imported, unless they belong to ``exempt_modules``. There are no exceptions for single imports.
    """

    source_modules = fields.SetField(subfield=fields.StringField())
    allowed_modules = fields.SetField(subfield=fields.StringField())
    exempt_modules = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that no list allows."""
        rooms, exempt = _texts(self.source_modules), _texts(self.exempt_modules)
        allowed = rooms | _texts(self.allowed_modules)
        refused = []
        for importer in sorted(graph.modules):
            if not _within(importer, rooms) or _within(importer, exempt):
                continue
            refused += [
                f"{importer} -> {imported}"
                for imported in sorted(graph.find_modules_directly_imported_by(importer))
                if not _within(imported, allowed) or _within(imported, exempt)
            ]
        return ContractCheck(kept=not refused, metadata={"refused": refused})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line per rejected import."""
        for written in check.metadata["refused"]:
            output.print_error(f"{written} is not allowed")


def _texts(values: Any) -> set[str]:
    """Return the texts of an option; ``fields`` has no types for the values that it parses."""
    return {str(value) for value in values or ()}


def _within(module: str, packages: set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
