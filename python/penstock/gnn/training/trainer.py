"""The loop over epochs and steps, and where it stands."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import torch

from penstock.callbacks import Progress
from penstock.gnn.training import checkpoints
from penstock.gnn.training.accounting import account_of
from penstock.gnn.training.embeddings import Embeddings
from penstock.gnn.training.interrupts import Interrupts
from penstock.gnn.training.models import SampledModel, parameters_of, shape_for
from penstock.gnn.training.objectives import features_of, objective_for
from penstock.gnn.training.options import Options
from penstock.gnn.training.places import exists
from penstock.gnn.training.ranks import Ranks, ranks_for
from penstock.gnn.training.reporting import Reporter
from penstock.gnn.training.results import Account, Epoch, Interrupted, Result, estimated_overlap
from penstock.gnn.training.sources import OpenSource, Source
from penstock.gnn.training.splits import TEST, TRAIN, VALID
from penstock.gnn.training.timeline import TRAINING, WAITING, Overlap, Timeline


def run(
    options: Options, open_source: OpenSource, timeline: Timeline | None, progress: Progress | None
) -> Result:
    """`entry.train`, where torch_geometric is installed."""
    begin = time.perf_counter()
    with ranks_for(options.device) as ranks, _random_state_kept(ranks.device), ExitStack() as opened:
        source = open_source(options, ranks)
        try:
            # No name here keeps the trainer: its parallel model has to end before the process group does.
            return Trainer(options, source, ranks, timeline, progress, opened).train(begin)
        finally:
            source.close()
            gc.collect()


def _random_state_kept(device: Any) -> AbstractContextManager[Any]:
    """What torch draws after the block is what it would have drawn without it."""
    kept: AbstractContextManager[Any] = torch.random.fork_rng([device] if device.type == "cuda" else [])
    return kept


class Trainer:
    """A model, its optimizer, and how far they are: `epoch`, from 0, and the steps of it that are done."""

    def __init__(
        self,
        options: Options,
        source: Source,
        ranks: Ranks,
        timeline: Timeline | None,
        progress: Progress | None,
        opened: ExitStack,
    ) -> None:
        """opened: Closes what the trainer opens."""
        self.options, self.source, self.ranks, self.timeline = options, source, ranks, timeline
        self.reporter = Reporter(progress if ranks.first else None, options.epochs)
        self.interrupts = Interrupts()
        torch.manual_seed(options.seed)
        self.model = SampledModel(options, shape_for(options, source)).to(ranks.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self.embeddings: Embeddings | None = None
        if options.embeddings is not None:
            self.embeddings = opened.enter_context(closing(Embeddings(options, source, ranks)))
        self.objective = objective_for(options.task, self.embeddings or features_of)
        # The weights begin equal in all processes; what they drop differs.
        torch.manual_seed(options.seed + ranks.rank)
        self.loader = source.loader(TRAIN)
        # A loader that takes a timeline records its own lanes, waiting among them.
        self.records_waiting = not hasattr(self.loader, "timeline")
        if not self.records_waiting:
            self.loader.timeline = timeline
        # What a checkpoint and this training must have in common.
        self.origin = {
            "options": options.fixed(),
            "source": source.identity(),
            "processes": ranks.size,
        }
        self.evaluators: dict[str, Any] = {}
        self.epoch = self.step = 0
        self.epochs: list[Epoch] = []
        self.losses: list[float] = []  # of the epochs that are done, mean over the processes
        self.here: list[Any] = []  # of this epoch's steps, in this process; on the device
        self.account = Account()  # of this epoch
        self.loader_state: Any = None  # of an epoch that is to be gone on with
        self.resumed_at: tuple[int, int] | None = None
        if options.resume:
            self._resume()
        self.parallel = ranks.parallel(self.model)  # last: what is refused above needs no other process

    def train(self, begin: float) -> Result:
        """All epochs that are left, and what the test set measures.

        begin: When the work began, by time.perf_counter.
        """
        # Ranks that stop at different steps would wait for each other's gradients.
        with self.interrupts if self.ranks.size == 1 else nullcontext(), self._stream():
            try:
                if self.embeddings is not None and self.resumed_at is None:
                    self._save()  # a table that has been trained belongs to a checkpoint
                while self.epoch < self.options.epochs:
                    self._train_epoch()
                    self._finish_epoch()
                test = self._measure(TEST)
                return self._result(test, time.perf_counter() - begin)
            except Interrupted:
                raise
            except KeyboardInterrupt:
                raise Interrupted(self.epoch + 1, self.step, saved=False) from None

    def _stream(self) -> AbstractContextManager[Any]:
        """On the multiprocessors that the loader leaves, where it has some of its own."""
        stream = getattr(self.loader, "training_stream", None)
        if stream is not None:
            stream.wait_stream(torch.cuda.current_stream(self.ranks.device))  # which made the model
        on_stream: AbstractContextManager[Any] = torch.cuda.stream(stream)
        return on_stream

    def _result(self, test: dict[str, float] | None, seconds: float) -> Result:
        return Result(
            options=self.options.as_dict(),
            device=str(self.ranks.device),
            processes=self.ranks.size,
            parameters=parameters_of(self.model) + (self.embeddings.parameters if self.embeddings else 0),
            epochs=self.epochs,
            losses=self.losses,
            test=test,
            seconds=seconds,
            resumed_at=self.resumed_at,
            overlap=self._overlap(),
            state={name: value.detach().cpu() for name, value in self.model.state_dict().items()},
        )

    def _overlap(self) -> Overlap:
        measured = None if self.timeline is None else self.timeline.overlap()
        return measured if measured and measured.loading > 0 else estimated_overlap(self.epochs)

    def _train_epoch(self) -> None:
        self.loader.set_epoch(self.epoch)
        if self.loader_state is not None:
            self.loader.load_state_dict(self.loader_state)
            self.loader_state = None
        steps = len(self.loader)
        self.parallel.train()
        if self.step < steps:
            with self._accounted():
                self._steps(steps)

    def _steps(self, steps: int) -> None:
        every = self.options.checkpoint_every
        self.reporter.begin(self.epoch, steps)
        for batch in self._batches():
            self._learn(batch)
            self.step += 1
            if self.step < steps:
                if self.interrupts.pending or (every and self.step % every == 0):
                    self._save()
                self._check_interrupt(saved=self.options.checkpoint is not None)

    def _batches(self) -> Iterator[Any]:
        batches = iter(self.loader)
        while True:
            begin = time.perf_counter()
            with self._span(WAITING) if self.records_waiting else nullcontext():
                batch = next(batches, None)
            self.account.waiting += time.perf_counter() - begin
            if batch is None:
                return
            yield batch

    def _learn(self, batch: Any) -> None:
        with self._span(TRAINING), self._gpu_span(TRAINING):
            self.optimizer.zero_grad(set_to_none=True)
            if self.embeddings is not None:
                self.embeddings.optimizer.zero_grad()
            answer = self.objective.answer(self.parallel, batch)
            answer.loss.backward()
            self.optimizer.step()
            if self.embeddings is not None:
                self.embeddings.optimizer.step()
        self.here.append(answer.loss.detach())
        self.reporter.step(self.step + 1, answer)

    def _finish_epoch(self) -> None:
        self.ranks.align(self.model.buffers())
        losses = self.ranks.mean(torch.stack(self.here).double()).tolist()
        self._check_losses(losses)
        every = self.options.evaluate_every
        last = self.epoch + 1 == self.options.epochs
        valid = None
        if last or (every and (self.epoch + 1) % every == 0):
            self._save()  # an evaluation may be long
            self._check_interrupt(saved=self.options.checkpoint is not None)
            valid = self._measure(VALID)
        self.losses += losses
        mean = sum(losses) / len(losses)
        self.epochs.append(Epoch(self.epoch + 1, len(losses), mean, valid, self.account))
        self.here, self.account = [], Account()
        self.epoch, self.step = self.epoch + 1, 0
        self._save()
        self._check_interrupt(saved=self.options.checkpoint is not None)

    def _measure(self, split: str) -> dict[str, float] | None:
        if split not in self.evaluators:
            self.evaluators[split] = self.source.loader(split)
        self.parallel.eval()
        self.reporter.evaluating(split)
        saved = self.options.checkpoint is not None
        return self.objective.measure(
            self.model, self.evaluators[split], self.ranks, lambda: self._check_interrupt(saved)
        )

    def _check_interrupt(self, saved: bool) -> None:
        if self.interrupts.pending:
            raise Interrupted(self.epoch + 1, self.step, saved)

    @contextmanager
    def _accounted(self) -> Iterator[None]:
        """Adds to the epoch's account how long the block takes, and what the loader counts meanwhile."""
        begin, before = time.perf_counter(), account_of(self.loader)
        try:
            yield
        finally:
            after = account_of(self.loader)
            self.account.add(after.since(before))
            self.account.seconds += time.perf_counter() - begin

    def _span(self, lane: str) -> AbstractContextManager[None]:
        if self.timeline is None:
            return nullcontext()
        return self.timeline.span(lane, epoch=self.epoch + 1, batch=self.step)

    def _gpu_span(self, lane: str) -> AbstractContextManager[None]:
        if self.timeline is None or self.ranks.device.type != "cuda":
            return nullcontext()
        return self.timeline.gpu_span(lane, self.ranks.device, epoch=self.epoch + 1, batch=self.step)

    def _save(self) -> None:
        """Of all processes at the same step."""
        path = self.options.checkpoint_path
        if path is None:
            return
        inside = 0 < self.step < len(self.loader)
        cuda = self.ranks.device.type == "cuda"
        own = {
            "loader": self.loader.state_dict() if inside else None,
            "losses": torch.stack(self.here).tolist() if self.here else [],
            "account": asdict(self.account),
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state(self.ranks.device) if cuda else None,
        }
        ranks = self.ranks.gather(own)
        for each in ranks:
            self._check_losses(each["losses"])
        if self.ranks.first:
            content = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "epoch": self.epoch,
                "step": self.step,
                "epochs": [epoch.as_dict() for epoch in self.epochs],
                "losses": torch.tensor(self.losses, dtype=torch.float64),
                "ranks": ranks,
            }
            checkpoints.save(path, {**self.origin, **content}, self.embeddings)

    def _check_losses(self, losses: list[float]) -> None:
        """ValueError for one of this epoch that is no number. Neither are the weights then, and a checkpoint
        of them would replace one that can be gone on from."""
        wrong = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
        if wrong is not None:
            raise ValueError(
                f"train: the loss of step {wrong + 1} in epoch {self.epoch + 1} is {losses[wrong]}: look for "
                "features that are no finite numbers, or give a smaller lr"
            )

    def _resume(self) -> None:
        path = self.options.checkpoint_path
        assert path is not None  # Options has checked it
        if not exists(path):
            if self.ranks.first:
                self.reporter.note(f"resume {path}: there is no checkpoint yet: the training begins")
            return
        content = checkpoints.load(path)
        checkpoints.check(path, content, self.origin)
        if self.embeddings is not None:
            checkpoints.restore(path, self.embeddings)
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.epoch, self.step = content["epoch"], content["step"]
        self.epochs = [Epoch.from_dict(values) for values in content["epochs"]]
        self.losses = content["losses"].tolist()
        own = content["ranks"][self.ranks.rank]
        self.loader_state = own["loader"]
        self.here = list(torch.tensor(own["losses"], device=self.ranks.device).unbind())
        self.account = Account(**own["account"])
        torch.set_rng_state(own["random"])
        if own["random_cuda"] is not None and self.ranks.device.type == "cuda":
            torch.cuda.set_rng_state(own["random_cuda"], self.ranks.device)
        self.resumed_at = (self.epoch + 1, self.step)
