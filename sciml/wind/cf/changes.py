"""What was done to a file's content, told in the result."""

from dataclasses import dataclass, field

import xarray as xr


@dataclass
class Changes:
    """What was done to a file's content, said in the result's attribute `changes`."""

    said: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, content: xr.Dataset) -> "Changes":
        """Return what was done to a dataset before."""
        return cls(list(filter(None, str(content.attrs.get("changes", "")).split("; "))))

    def say(self, what: str) -> None:
        """Add one, once."""
        if what not in self.said:
            self.said.append(what)
