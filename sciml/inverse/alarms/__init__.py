"""Said where a net learned nothing, or is asked of what it has not seen."""
