"""Pictures, tables and sliders of estimates."""
