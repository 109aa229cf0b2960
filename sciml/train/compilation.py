"""Compiled programs persist between runs."""

import jax

from wse._files import cache_folder


def enable_cache() -> None:
    """Turn on JAX's persistent compilation cache, unless the user has set one.

    JAX keeps only what took a second to compile; ours take about half of that, so the bound is
    lowered to a tenth.
    """
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder("sciml", "xla")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
