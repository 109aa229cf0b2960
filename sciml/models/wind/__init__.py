"""Nets that refine fields of wind."""
