"""Whether a progress bar is shown."""

from typing import Any


def hidden(when: bool) -> dict[str, Any]:
    """Return the options that hide a tqdm bar, or none, so that `TQDM_DISABLE=1` hides it still.

    An explicit `disable=False` would overrule that variable.
    """
    return {"disable": True} if when else {}
