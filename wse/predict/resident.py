"""Seconds on one layer-pipelined wafer: set-up once, then samples flow through the whole net.

Per sample, and for a run::

    input   = a max(V / V0, a0 / a)                         V <= V0 numbers per sample
            = max(a sqrt(V / V0), t V)                      V > V0
    units   = max(b W, operations)                       W units
    operations = cycles / f                              of a placed net with convolutions
               = F_p / (eta_p R) + F_c / (eta_c R)       F operations per sample of others
    T_setup = S0 + c (P / 1e6)^1.5                          P parameters, on to P^1 beyond 31e6
    T       = T_setup + samples (input + units)

Of CS-2, a, b, S0 and c are calibrated on four published points (`wse.calibrate`), all with
V0 = 1002; of CS-1, whose one published run gives a, the others are those of CS-2. More
numbers come in at the vendor's own estimate t at best; one host channel would take a V / V0, and
the interval goes half-way there (geometric mean). W counts the units of one token or pixel; F_p
and F_c are operations of products and convolutions, eta their shares of the peak R; cycles are
those of the slowest layer in the placement of `wse.layout.pipeline`. What the machine's own numbers
forbid bounds each phase from below (`wse.predict.limits`).
"""

from math import sqrt

from wse._numbers import positive
from wse.machine.catalog import CS1, CS2, PIPELINED, RESIDENT, Pipelined
from wse.machine.cluster import Cluster
from wse.machine.constants import at_end
from wse.machine.machine import Machine
from wse.models.shapes.workload import Layer, Workload
from wse.predict import grid, limits
from wse.predict.phase import Phase, pipelined_setup, spanned

WIDTHS = (32, 2048)  # calibrated: the range of Table 4 of the OSTI brief
DEPTH = 8  # calibrated: every net of that table
BATCH = 100  # assumed: below it, filling and draining the pipeline starts to count


def phases(
    workload: Workload,
    machine: Machine,
    samples: int,
    *,
    replicas: int = 1,
    constants: Pipelined | None = None,
) -> tuple[Phase, ...]:
    """The time of a training run by phase, in the order in which it is spent.

    Args:
        workload: the model.
        machine: one system.
        samples: samples processed, every epoch counted.
        replicas: copies of the model on the wafer, each with a host channel and its share of the
            samples; all channels together are bounded by the network ports.
        constants: of the model of this module; None: those of the wafer.

    Returns:
        Set-up, input, units. Their times add up to the total.

    Raises:
        ValueError: a wafer without constants, or a net that the wafer cannot hold.

    >>> from wse.workload import dense
    >>> [f"{x.name} {x.time_s:.1f}" for x in phases(dense(width=512), CS2, 1_000_000)][-3:]
    ['setup_place 12.9', 'input 4.6', 'units 1.1']
    """
    constants = constants or known(machine)
    _refuse(workload, machine, replicas)
    ends = (constants, at_end(constants, fast=True), at_end(constants, fast=False))
    each = samples / replicas
    value_bytes = float(constants.bytes_per_value.value)
    least = limits.least_s(workload, Cluster(machine), samples, value_bytes=value_bytes)
    return (
        *pipelined_setup(workload, constants),
        spanned(
            "input",
            "host link",
            [each * one for one in input_s(workload, constants)],
            limit_s=least["host link"],
        ),
        spanned(
            "units",
            "fabric",
            [each * units_s(workload, machine, one) for one in ends],
            constants.unit_s_per_sample.status if workload.is_dense_chain else "assumed",
            least["fabric"],
        ),
    )


def input_s(workload: Workload, constants: Pipelined = PIPELINED) -> tuple[float, float, float]:
    """Seconds that one sample takes to come in, as the module's words have it: usual, least, most.

    >>> from wse.models.shapes import get
    >>> [f"{1e6 * time_s:.1f}" for time_s in input_s(get("FC-MNIST"))]
    ['3.6', '1.8', '7.3']
    """
    share = workload.entering / constants.values.value
    usual, least, most = (
        _comes(share, one)
        for one in (constants, at_end(constants, fast=True), at_end(constants, fast=False))
    )
    channel_s = constants.input_s_per_sample.value * share
    return usual, least, max(most, sqrt(channel_s * usual))


def _comes(share: float, constants: Pipelined) -> float:
    a, values = constants.input_s_per_sample.value, share * constants.values.value
    if share <= 1:
        return max(a * share, constants.least_input_s.value)
    return max(a * sqrt(share), constants.transmission_s_per_value.value * values)


def units_s(workload: Workload, machine: Machine, constants: Pipelined = PIPELINED) -> float:
    """Seconds between two samples on the wafer, as the module's words have it."""
    passed_s = constants.unit_s_per_sample.value * units(workload)
    return max(passed_s, products_s(workload, machine, constants))


def products_s(workload: Workload, machine: Machine, constants: Pipelined = PIPELINED) -> float:
    """Seconds of a sample's operations: as convolutions are placed, or at shares of the peak."""
    if cycles := _placed_cycles(workload, machine):
        return constants.placed.value * cycles / machine.clock_hz.value
    first = workload.layers[0]
    flops = {"products": 0.0, "convolution": 0.0}
    for x in workload.layers:
        every = x.forward_flops + x.backward_flops - (x is first) * x.of_inputs_flops
        flops["convolution"] += x.convolved * every
        flops["products"] += (1 - x.convolved) * every
    shares = {"products": constants.product_share, "convolution": constants.convolution_share}
    at_peak = sum(count / shares[kind].value for kind, count in flops.items())
    return at_peak / machine.peak_fp16_flops_per_s


def _placed_cycles(workload: Workload, machine: Machine) -> int | None:
    """Of the slowest layer of a net with convolutions, if it is placed."""
    if not any(layer.kind == "convolution" for layer in workload.layers):
        return None
    return grid.pipelined_cycles(workload, machine)


def units(workload: Workload) -> float:
    """Units of the widest hidden layer, of one token or pixel.

    >>> from wse.models.shapes import get
    >>> units(get("BERT-large")), units(get("FC-MNIST"))
    (4096.0, 500.0)
    """
    return max(
        (float(x.units or x.outputs / _places(x, workload.tokens)) for x in workload.layers[:-1]),
        default=0.0,
    )


def _places(layer: Layer, tokens: int) -> int:
    """How often a layer's weights meet a sample: tokens, pixels; once in a dense layer.

    Biases and norms count among parameters, so that what is nearly once a token is that.
    """
    if not layer.parameters or not layer.forward_flops:
        return layer.outputs  # nothing meets a matrix there
    found = max(1, round(layer.forward_flops / 2 / layer.parameters))
    return tokens if abs(found - tokens) <= 0.01 * tokens else found


def cautions(
    workload: Workload, machine: Machine, batch: int, replicas: int = 1
) -> tuple[str, ...]:
    """What lies outside the four nets calibrated on, one sentence each; none for those nets.

    >>> from wse.workload import dense
    >>> cautions(dense(width=512), CS2, batch=100)
    ()
    """
    values = workload.entering
    low, high = WIDTHS
    wide = low <= workload.width <= high
    large = workload.parameters > PIPELINED.most_parameters.value
    found = {
        f"width {workload.width} lies outside the calibrated {low} to {high} units"
        f"{', and set-up grows as nobody published' * large}": not wide,
        f"depth {workload.depth} is not the calibrated {DEPTH} hidden layers": (
            workload.depth != DEPTH
        ),
        "the model is no plain chain of dense layers, and only such nets were calibrated; of "
        "others one run (BERT-large) and one estimate of the vendor's (U-Net) are known: a "
        "range is all that is known": not workload.is_dense_chain,
        "no placement of these convolutions on the wafer was found, all layers at once, by "
        "wse.layout.pipeline: the time is of a share of the peak, and the net may not fit: pass "
        "mode='streaming'": any(x.kind == "convolution" for x in workload.layers)
        and not _placed_cycles(workload, machine),
        f"set-up: {workload.parameters:,} parameters are more than the calibrated "
        f"{PIPELINED.most_parameters.value:,}, and none was published of such nets": large and wide,
        f"{values} numbers per sample are not the calibrated {PIPELINED.values.value}: fewer are "
        "assumed to take less in proportion, more between one host channel and the vendor's own "
        "estimate": values != PIPELINED.values.value,
        "zeros among the weights: nothing published in this mode, they take as long as others": (
            any(layer.density < 1 for layer in workload.layers)
        ),
        f"{replicas} replicas: nothing published was calibrated on": replicas > 1,
        f"batch {batch} is below {BATCH}: filling and draining the pipeline at every step is not "
        "modelled": batch < BATCH,
        f"one run is known of {machine.wafer}, of FC-MNIST: it sets the rate of input; the other "
        "constants are those of WSE-2, within a factor of three": machine.wafer == CS1.wafer,
        f"{machine.name} is not the catalogue's: only its limits enter, the calibrated constants "
        "stay": machine not in (CS1, CS2),
    }
    return tuple(text for text, holds in found.items() if holds)


def known(machine: Machine) -> Pipelined:
    """The constants of a machine's wafer.

    Raises:
        ValueError: a wafer of which no run in this mode was published.
    """
    if machine.wafer not in RESIDENT:
        raise ValueError(
            f"machine is {machine.name} with {machine.wafer}; in pipelined mode runs are known of "
            f"{' and '.join(sorted(RESIDENT))} alone: pass machine=wse.CS2(mode='pipelined')"
        )
    return RESIDENT[machine.wafer]


def _refuse(workload: Workload, machine: Machine, replicas: int) -> None:
    positive("replicas", replicas)
    limits.check_resident(workload, Cluster(machine), replicas)
