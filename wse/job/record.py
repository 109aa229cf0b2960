"""What a run reports, under the names that users of the real machine know."""

from dataclasses import asdict, dataclass
from pathlib import Path

from wse._files import write_json


@dataclass(frozen=True)
class Record:
    """Performance of a run. Rates and times are those of the emulation on this computer.

    Attributes:
        total_samples: trained on in this call, but for its first step, which compiles.
        total_time: seconds of these steps.
        compile_time: seconds until the first step's programs were ready, that step included.
        programming_time: seconds until the weights lay in the store.
        est_samples_per_sec: what `wse.estimate` expects of the real machine; None: it says nothing
            of this model.
        why: for which machine, mode and release that is, and who or what chose them; where there
            is none, why not.

    >>> import wse
    >>> wse.job.Record(1000, 2.0, 1.0, 0.1, None, "no estimate was asked for").total_samples
    1000
    """

    total_samples: int
    total_time: float
    compile_time: float
    programming_time: float
    est_samples_per_sec: float | None
    why: str = ""

    @property
    def samples_per_sec(self) -> float:
        """Samples of a second of stepping, on this computer."""
        return self.total_samples / self.total_time if self.total_time > 0 else 0.0

    def write(self, folder: Path) -> Path:
        """Write performance.json."""
        said = {**asdict(self), "samples_per_sec": self.samples_per_sec}
        said["note"] = (
            "times and rates are of the emulation on this computer; est_samples_per_sec is the "
            "estimate for the real machine"
        )
        return write_json(folder / "performance.json", said)
