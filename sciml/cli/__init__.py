"""The command line: it parses, calls, prints."""
