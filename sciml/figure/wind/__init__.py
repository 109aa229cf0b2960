"""Drawings of fields of wind."""
