"""Wind that is made: turbulence, random fields, hills."""
