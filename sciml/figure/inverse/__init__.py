"""Drawings of estimates and posteriors."""
