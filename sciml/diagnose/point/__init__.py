"""Scores of point estimates."""
