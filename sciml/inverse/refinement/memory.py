"""What a refinement has done, kept in a folder, so that the same call goes on from there."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml.inverse.result import Fit
from sciml.ode.blackbox import BlackBox
from sciml.ode.data.identity import identity
from sciml.ode.data.kept import folder_of
from sciml.ode.methods.solver import Problem, chosen_method
from sciml.ode.prior import described
from sciml.train.checkpoint import Checkpoint, Store, digest


@dataclass(frozen=True)
class Kept:
    """A folder of the rounds of one refinement; without one nothing is kept.

    `asked` is whether the likelihood tells when to stop.
    """

    folder: Path | None
    own: dict[str, Any]
    asked: bool

    @classmethod
    def of(
        cls,
        folder: Path | str | None,
        fit: Fit,
        problem: Problem,
        seen: xr.DataArray,
        options: dict[str, Any],
    ) -> "Kept":
        """Return the folder of a run, which is told by all that decides its numbers."""
        place, asked = folder_of(folder), options["likelihood"]
        if place is None:
            return cls(None, {}, asked)
        known = [seen[name].values for name in (*fit.grid.conditions, *fit.grid.series)]
        own = {
            **options,
            "fit": digest((fit.params, fit.reference, asdict(fit.inputs))),
            "net": f"{fit.model} {fit.scaling}",
            "recipe": asdict(fit.recipe),
            "problem": told_of(problem),
            "observation": digest((seen.values, known)),
        }
        return cls(place, json.loads(json.dumps(own, default=str)), asked)

    def store(self, name: str) -> Store:
        """Return a file of this run."""
        if self.folder is None:
            return Store()
        return Store(self.folder / name, self.own, refuses="name another folder=")

    def checkpoint(self, number: int) -> Checkpoint | None:
        """Return that of the training of a round."""
        if self.folder is None:
            return None
        return Checkpoint(self.folder / f"round-{number}.checkpoint", self.own)

    def row(self, number: int, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what is said of a round."""
        store = self.store(f"round-{number}.verdict")
        found = store.arrays()
        if found is not None:
            return json.loads(str(found["row"]))
        row = make()
        store.put({"row": np.array(json.dumps(row))})
        return row

    def data(self, number: int, make: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return the simulations of a round."""
        store = self.store(f"round-{number}.simulations")
        found = store.arrays()
        if found is not None:
            return unpacked(found)
        data = make()
        store.put(packed(data))
        return data


def told_of(problem: Problem) -> dict[str, Any]:
    """Return what tells a problem, its noise and its method; of a black box, little is known."""
    noise: Any = getattr(problem, "noise", None)
    settings: dict[str, Any] = {"noise": noise and noise.describe()}
    if isinstance(problem, BlackBox):
        return {"system": problem.name, "prior": described(problem.prior), **settings}
    method = chosen_method(problem)
    return identity(problem, settings | {"method": method.describe()}, method.dtype)


def packed(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Return a Dataset as plain arrays."""
    told: dict[str, Any] = {"attrs": data.attrs, "coords": [*map(str, data.coords)]}
    arrays = {}
    for name, variable in data.variables.items():
        values = variable.values
        arrays[f"variable/{name}"] = values.astype(str) if values.dtype.hasobject else values
        told[str(name)] = [[*map(str, variable.dims)], variable.attrs]
    return {"told": np.array(json.dumps(told)), **arrays}


def unpacked(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """Return a Dataset from plain arrays."""
    told = json.loads(str(arrays["told"]))
    attrs, coords = told.pop("attrs"), told.pop("coords")
    variables = {
        name: xr.Variable(dims, arrays[f"variable/{name}"], own)
        for name, (dims, own) in told.items()
    }
    inner = {name: each for name, each in variables.items() if name not in coords}
    return xr.Dataset(inner, {name: variables[name] for name in coords}, attrs)
