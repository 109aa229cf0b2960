"""Training, evaluation and inference of a model on the emulated cluster."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import numpy as np

from wse._files import write_aside, write_json
from wse._numbers import positive
from wse.execute.memoryx.snapshot import snapshot
from wse.graph.outline import shape
from wse.job import data, fitting, net, optimizer, settings
from wse.job.kept import begin, keep
from wse.job.params import Input, Params
from wse.job.record import Record
from wse.machine.cluster import CS2, Cluster
from wse.models.pytorch.weights import into, read_weights
from wse.models.trainable.which import Named, which
from wse.predict.estimate import estimate

MODES = {"weight_streaming": "streaming", "pipeline": "pipelined"}  # by the params file's words
BATCHES = 32  # assumed: of which norms over the batch are averaged
EVERY_S = 20.0  # assumed: what a kill may cost, at most, beside one step
log = logging.getLogger("wse.run")


@dataclass(frozen=True)
class Job:
    """A params file, a model and a cluster.

    Attributes:
        params: what the file says.
        module: "package.module:Class", or None for a perceptron.
        machine: the cluster, one CS-2 if left out; its systems are those of the runconfig.
        steps: to train in all; None: what the runconfig says.
        weights: a safetensors file to start from, its names paths in the tree of parameters; a
            run that goes on has its own.

    Raises:
        ValueError: steps that are no positive integer.

    >>> import wse
    >>> job = wse.job.Job(wse.job.Params(model={"hidden_sizes": [4]}), steps=10)
    >>> job.cluster.mode
    'streaming'
    """

    params: Params
    module: str | None = None
    machine: Cluster | None = None
    steps: int | None = None
    weights: Path | str | None = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            positive("steps", self.steps, "pass --num_steps 100")

    @cached_property
    def folder(self) -> Path:
        """Where all of the run lies."""
        return Path(self.params.runconfig.model_dir)

    @cached_property
    def cluster(self) -> Cluster:
        """The machine with systems, mode, sparsity and precision of the params file.

        Its estimate is of that mode too: a pipelined one takes no notice of zeros.
        """
        machine, config = self.machine or CS2(), self.params.runconfig
        return replace(
            machine,
            systems=config.num_csx,
            mode=MODES.get(config.execution_strategy or "", machine.mode or "streaming"),
            sparsity=optimizer.masks(self.params.sparsity, self.last),
            precision=optimizer.arithmetic(self.params.precision),
        )

    @cached_property
    def samples(self) -> data.Samples:
        """The training samples."""
        return data.load(_given(self.params.train_input, "train_input"), named=self.named)

    @cached_property
    def named(self) -> Named | None:
        """The model that the params file names; None: a perceptron, or a class of one's own."""
        if self.module:
            return None
        entered = self.params.train_input or self.params.eval_input
        return which(self.params.model, entered.sequence if entered else {})

    def batch(self, step: int) -> data.Batch:
        """The batch of a step, counted from 0, with what chance adds: the same at every call."""
        return self.drawn(self.samples.batch(step), step)

    def drawn(self, batch: data.Batch, step: int) -> data.Batch:
        """A batch with what chance adds at a step; below 0, of an evaluation."""
        if self.named is None:
            return batch
        seed = [self.params.runconfig.seed, step >= 0, abs(step)]
        return fitting.drawn(batch, self.named, np.random.default_rng(seed))

    @cached_property
    def built(self) -> net.Model:
        """The model with its first weights."""
        seed = self.params.runconfig.seed
        made = net.build(self.module, self.params.model, self.samples, seed, self.named)
        if self.weights is not None:
            read = read_weights(self.weights)
            made = replace(made, params=into(made.params, read, str(self.weights)))
        optimizer.check_patterns(self.params.sparsity, made.params)
        return made

    @cached_property
    def last(self) -> int:
        """The number of steps at which training ends.

        Raises:
            ValueError: nothing says.
        """
        config = self.params.runconfig
        if self.steps or config.max_steps:
            return self.steps or config.max_steps or 0
        if config.num_epochs:
            return config.num_epochs * self.samples.steps_per_epoch
        raise ValueError(
            "runconfig has neither max_steps nor num_epochs; a run must end: write max_steps: 1000 "
            "or pass --num_steps"
        )

    @cached_property
    def executor(self) -> Any:
        """The cluster at work on the model; streaming, with its store in `store`."""
        return self.at_work(self.store)

    def at_work(self, store: Path) -> Any:
        """The same with another store."""
        every = self.params.runconfig.checkpoint_steps
        streamed: dict[str, Any] = {"folder": store, "checkpoint_every": every}
        return self.cluster.executor(
            self.built.loss,
            self.built.params,
            self.batch(0),
            optimizer.optimizer(self.params.optimizer, self.built.rates),
            **(streamed if self.cluster.mode == "streaming" else {}),
        )

    @property
    def asked(self) -> tuple[Any, Any, Any]:
        """Loss, and shapes of weights and batch, as `wse.estimate` and `wse.check` take them."""
        return self.built.loss, shapes(self.built.params), shapes(self.batch(0))

    @property
    def store(self) -> Path:
        """Where weights and the optimizer's state lie."""
        return self.folder / "store"


def train(job: Job) -> Record:
    """Train to the last step, from the last complete one in `model_dir` on.

    Writes `model_dir`/store (weights and the optimizer's state), settings.json, performance.json,
    and the last step's events as trace.json, which ui.perfetto.dev opens.

    Raises:
        ValueError: samples, model or settings that do not fit, or the store of another model.
        FloatingPointError: the loss stopped being finite; the store keeps the step before.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import wse
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.savez(folder / "data.npz", features=np.ones((8, 3), "f4"), labels=np.ones((8, 1), "f4"))
    >>> _ = (folder / "params.yaml").write_text(f'''
    ... train_input: {{data_dir: {folder}/data.npz, batch_size: 4}}
    ... eval_input: {{data_dir: {folder}/data.npz, batch_size: 4}}
    ... model: {{hidden_sizes: [4], loss: mse}}
    ... runconfig: {{max_steps: 2, model_dir: {folder}/run}}
    ... ''')
    >>> job = wse.job.Job(wse.job.read(folder / "params.yaml"))
    >>> wse.job.train(job).total_samples  # of two steps, but for the first, which compiles
    4
    >>> wse.job.evaluate(job)["samples"], wse.job.infer(job).name
    (8, 'predictions.npz')
    """
    began = perf_counter()
    state, shelf = begin(job.executor, job.built.params, job.store)
    programmed = perf_counter()
    first = state.step
    if first:
        log.info("going on from step %d in %s", first, job.folder)
        settings.check(job, tell=True)
    settings.write(job)
    config, size = job.params.runconfig, job.samples.plan.batch_size
    compiled = stepped = saved = perf_counter()
    try:
        while state.step < job.last:
            following, loss = job.executor.train_step(state, job.batch(state.step))
            if not np.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {float(loss)} at step {following.step}; it must stay finite: "
                    "lower the learning_rate, or set max_gradient_norm"
                )
            state = following
            now = perf_counter()
            if state.step == first + 1:
                compiled = stepped = now
            if state.step % config.log_steps == 0 or state.step == job.last:
                rate = size * (state.step - first - 1) / max(now - stepped, 1e-9)
                log.info(
                    "| Train Device=CSX Step=%d Loss=%.5f GlobalRate=%.1f",
                    state.step, float(loss), rate,
                )  # fmt: skip
            keep(state, shelf, config.checkpoint_steps)
            if now - saved > EVERY_S:
                keep(state, shelf)
                saved = perf_counter()
    finally:
        keep(state, shelf)
    promised, why = expected(job)
    done = Record(
        total_samples=size * max(0, state.step - first - 1),
        total_time=max(0.0, perf_counter() - stepped),
        compile_time=compiled - programmed,
        programming_time=programmed - began,
        est_samples_per_sec=promised,
        why=why,
    )
    done.write(job.folder)
    if state.step > first:
        job.executor.run.save(job.folder / "trace.json")
    return done


def evaluate(job: Job) -> dict[str, int | float]:
    """The mean loss over the evaluation samples, of the weights in `model_dir`.

    It is computed in one piece by JAX, not streamed. Writes evaluation.json.

    Raises:
        ValueError: no evaluation input, nothing trained in `model_dir`, or there another net.

    >>> import wse
    >>> wse.job.evaluate(wse.job.Job(wse.job.read("params.yaml")))  # doctest: +SKIP
    """
    state = trained(job)
    held = data.load(_given(job.params.eval_input, "eval_input"), named=job.named)
    net.check_labels(job.built, held.labels, "eval_input")
    loss, averages = jax.jit(job.built.loss), averaged(job, state.params)
    sums = [
        (len(batch["features"]), float(loss(state.params, {**fixed(job, batch, i), **averages})))
        for i, batch in enumerate(held.in_order(job.params.runconfig.eval_steps))
    ]
    count = sum(size for size, _ in sums)
    found = {"step": state.step, "samples": count, "loss": sum(n * x for n, x in sums) / count}
    write_json(job.folder / "evaluation.json", found)
    log.info("| Eval Device=CSX Step=%d Loss=%.5f Samples=%d", state.step, found["loss"], count)
    return found


def fixed(job: Job, batch: data.Batch, place: int) -> data.Batch:
    """A batch of an evaluation: masked as at every other one, nothing dropped."""
    return {name: x for name, x in job.drawn(batch, -1 - place).items() if name != "keys"}


def averaged(job: Job, params: Any) -> dict[str, Any]:
    """Statistics of norms over the batch, of trained weights on batches of the training samples.

    They are computed when they are needed, as Wu and Johnson, arXiv 2105.07576, advise, so that no
    step keeps averages. Empty where a model has no such norm.
    """
    if job.built.statistics is None:
        return {}
    of = jax.jit(job.built.statistics)
    count = min(BATCHES, job.samples.steps_per_epoch)
    each = [of(params, job.batch(step)) for step in range(count)]
    return {"statistics": jax.tree.map(lambda *x: sum(x) / count, *each)}


def infer(job: Job) -> Path:
    """Write predictions.npz for the evaluation samples, of the weights in `model_dir`.

    Raises:
        ValueError: as `evaluate`.

    >>> import wse
    >>> wse.job.infer(wse.job.Job(wse.job.read("params.yaml")))  # doctest: +SKIP
    """
    state = trained(job)
    given = _given(job.params.eval_input, "eval_input")
    held = data.load(given, labels=False, named=job.named)
    predict = jax.jit(job.built.predict)
    more = averaged(job, state.params).values()
    steps = job.params.runconfig.eval_steps
    outputs = [predict(state.params, batch["features"], *more) for batch in held.in_order(steps)]
    path = job.folder / "predictions.npz"
    with write_aside(path) as aside:
        np.savez(aside, predictions=np.concatenate([np.asarray(x) for x in outputs]))
    return path


def trained(job: Job) -> Any:
    """The state of the last complete step in `model_dir`, where a training may be under way.

    Raises:
        ValueError: there is none.
    """
    resident = job.cluster.mode == "pipelined"
    params = job.built.params if resident else shapes(job.built.params)
    with snapshot(job.store) as store:
        try:
            state, _ = begin(job.at_work(store), params, store)
            if not state.step and resident:
                raise ValueError("nothing is in its store")
        except ValueError as error:
            said = str(error).replace(store.name, job.store.name)
            raise ValueError(
                f"{job.folder} holds no trained step ({said}): run with --mode train first"
            ) from error
        settings.check(job)
        return state


def expected(job: Job) -> tuple[float | None, str]:
    """Samples per second that the real machine is estimated to reach, and of which machine.

    Where the estimate says nothing of the model: None, and why not.
    """
    try:
        found = estimate(*job.asked, machine=job.cluster)
    except ValueError as error:
        log.warning("no estimate for the real machine: %s", error)
        return None, str(error)
    return float(found.samples_per_s), found.why


def shapes(tree: Any) -> Any:
    """Shapes and types of a tree of arrays."""
    return jax.tree.map(shape, tree)


def _given(found: Input | None, name: str) -> Input:
    if found is None:
        raise ValueError(f"the params file has no {name}; this mode needs it: add that section")
    return found
