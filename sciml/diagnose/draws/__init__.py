"""Scores of posterior draws against truths."""
