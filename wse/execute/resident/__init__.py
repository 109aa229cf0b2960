"""The layer-pipelined mode: the whole net is resident, parts of a batch flow through it."""
