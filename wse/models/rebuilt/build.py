"""A model that was read, as a loss and shapes."""

from wse.models.doors.given import ReadModel
from wse.models.rebuilt import images, text
from wse.models.zoo import Traceable, chain

TEXT = ("decoder", "parallel", "masked", "classes", "tags", "spans", "sentences")


def rebuilt(found: ReadModel, batch: int = 1) -> Traceable:
    """A model from `wse.read_model` as what `wse.trace` and `wse.check` take; no weight is made.

    It has as many parameters as the workload, and the operations of the model that the file
    describes, but for those that are listed as harmless: dropout, scales, caps of logits.

    Args:
        found: what was read.
        batch: samples of the batch.

    >>> import tempfile, pathlib, wse
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mnist.yaml"
    >>> _ = path.write_text("model: {name: fc_mnist, hidden_sizes: [50, 50]}")
    >>> wse.check(*vars(rebuilt(wse.read_model(path))).values()).verdict
    'native'
    """
    if found.family in TEXT:
        return text.stack(found.net, batch)
    if found.family == "pair":
        return text.translation(found.net, batch)
    if found.family == "picture":
        return images.picture(found.net[0], found.net[1], batch)
    if found.family == "diffused":
        return images.diffused(found.net[0], found.net[1], batch)
    if found.family == "unet":
        return images.segmented(found.net, batch)
    return chain([*found.net], batch)
