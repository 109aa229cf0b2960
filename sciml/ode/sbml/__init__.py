"""Models of others: SBML and PEtab."""
