"""From files of any format to fields of wind."""
