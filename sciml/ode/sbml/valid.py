"""What libsbml finds wrong with an SBML file, and what of SBML is not supported at all."""

from pathlib import Path
from typing import Any

# Of libsbml's checks: what says nothing about the numbers of a solution.
UNCHECKED = ("UNITS_CONSISTENCY", "MODELING_PRACTICE", "SBO_CONSISTENCY", "OVERDETERMINED_MODEL")
OF_UNITS = range(10311, 10314)  # its numbers of errors in names of units
HARMLESS = {"l3v2extendedmath", "layout", "render"}  # libsbml's own for level 3; what only draws


def check_document(document: Any, path: Path) -> None:
    """Refuse what libsbml finds wrong, units apart, and packages that change what a model means."""
    import libsbml

    for part in UNCHECKED:
        document.setConsistencyChecks(getattr(libsbml, f"LIBSBML_CAT_{part}"), False)
    if document.getModel() is not None:
        document.checkConsistency()
    errors = document.getErrorLog()
    serious = [errors.getError(i) for i in range(errors.getNumErrors())]
    serious = [
        e.getMessage().strip()
        for e in serious
        if e.getSeverity() >= libsbml.LIBSBML_SEV_ERROR and e.getErrorId() not in OF_UNITS
    ]
    if serious or document.getModel() is None:
        said = serious[0].splitlines()[-1][:300] if serious else "there is no model"
        raise ValueError(f"{path} is no valid SBML: {said.strip()}")
    plugins = {document.getPlugin(i).getPackageName() for i in range(document.getNumPlugins())}
    if needed := [n for n in sorted(plugins - HARMLESS) if document.getPackageRequired(n)]:
        raise ValueError(
            f"{path} uses the package {', '.join(needed)} of SBML, without which it means something"
            " else, and which is not supported: flatten it, or export the model without"
        )


def optional_libsbml() -> Any:
    """Return libsbml, an optional library."""
    try:
        import libsbml
    except ImportError:
        raise ImportError(
            "SBML is read by python-libsbml, which is not installed: pip install python-libsbml"
        ) from None
    return libsbml
