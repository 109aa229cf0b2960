"""Scores of refined fields."""
