"""Runs as tasks of Ray, on a cluster or on this machine; this process alone writes folders and store.

>>> import fastglt
>>> from fastglt.runs.ray_engine import ray_at
>>> fastglt.compare("cora", engine=ray_at("head:6379"), jobs=16)  # doctest: +SKIP

Needs the extra `fastglt[ray]`.
"""

import contextlib
import functools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastglt.data.origin import Origin
from fastglt.errors import FastGLTError
from fastglt.runs.engine import MakeEngine, Outcome, refuse_what_only_this_process_has
from fastglt.runs.experiment import thread_count
from fastglt.runs.logs import begin_log, remove_logs
from fastglt.runs.parcels import pack
from fastglt.runs.plan import Run
from fastglt.runs.ray_cluster import connect, in_short
from fastglt.runs.ray_task import FAILED, FINISHED, perform, receive
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.store import Store
from fastglt.system.terminal import safe, warn

TRIES = 3  # of a run whose worker is lost
_LOOK_EVERY = 0.2  # seconds


class RayEngine:
    """One task for each run; a worker that is lost is made good by another, a bounded number of times."""

    def __init__(
        self,
        jobs: int,
        *,
        logs: Path,
        store: Path,
        command: str,
        checkpoint_every: float = 10.0,
        address: str | None = None,  # HOST:PORT of a cluster's head; None: RAY_ADDRESS, or this machine
    ) -> None:
        self.jobs, self.logs, self.address = jobs, logs, address
        self.stop = False  # set it, and every run stops after its epoch, with a checkpoint
        self._store, self._command = store, command
        self._job_settings = {"command": command, "checkpoint_every": checkpoint_every}

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        """Outcomes as they come in; KeyboardInterrupt if runs were stopped."""
        refuse_what_only_this_process_has(runs)
        remove_logs(self.logs, "*", all_of_them=False)
        if not runs:
            return
        threads = max(thread_count(run.experiment.threads) for run in runs)
        connect(self.address, cpus=self.jobs * threads)
        cluster, waiting, ended = _Cluster(), deque(_Attempt(run) for run in runs), 0
        try:
            while cluster.running or (waiting and not self.stop):
                while waiting and len(cluster.running) < self.jobs and not self.stop:
                    cluster.submit(waiting.popleft(), self._job_settings)
                if self.stop:
                    cluster.ask_to_stop()
                for attempt, answer in cluster.answers():
                    outcome = self._outcome(attempt, answer)
                    if outcome is not None:
                        ended += 1
                        yield outcome
                    elif attempt.lost:
                        waiting.append(attempt)
        finally:
            cluster.end()
            with contextlib.suppress(OSError):
                self.logs.rmdir()  # if nothing has failed
        if self.stop or ended < len(runs):
            raise KeyboardInterrupt(f"{ended} of {len(runs)} runs")

    def _outcome(self, attempt: "_Attempt", answer: "dict[str, Any] | Exception") -> Outcome | None:
        """How a run ended; None if it was stopped, or is to be tried again."""
        run = attempt.run
        if isinstance(answer, Exception):
            return self._lost(attempt, answer)
        attempt.lost = ""
        told: dict[str, Any] = {"run": run, "warnings": [*attempt.warnings, *answer["warnings"]]}
        try:
            metrics = receive(answer["files"], RunFolder(run.folder, run.settings))
            if answer["ended"] == FAILED:
                return Outcome(reason=self._reason(run, answer), **told)
            if answer["ended"] != FINISHED or metrics is None:
                for message in told["warnings"]:
                    warn(f"{run.name}: {message}")
                return None
            entry = replace(run.entry(metrics, command=self._command), machine=answer["machine"])
            Store(self._store).ensure(entry)
            return Outcome(metrics=metrics, **told)
        except FastGLTError as error:
            return Outcome(reason=safe(error), **told)

    def _lost(self, attempt: "_Attempt", error: Exception) -> Outcome | None:
        """A worker that is gone: the run is tried again, until it has been often enough."""
        from ray.exceptions import RayTaskError

        attempt.lost = in_short(error)
        if isinstance(error, RayTaskError):  # the worker is there, and cannot even begin
            return Outcome(run=attempt.run, reason=attempt.lost, warnings=attempt.warnings)
        if attempt.number >= TRIES:
            reason = f"its worker was lost {attempt.number} times ({attempt.lost})"
            return Outcome(run=attempt.run, reason=reason, warnings=attempt.warnings)
        attempt.warnings.append(f"its worker was lost ({attempt.lost}); it was tried again")
        return None

    def _reason(self, run: Run, answer: dict[str, Any]) -> str:
        if not answer["log"]:
            return safe(answer["reason"])
        log = begin_log(self.logs, run.folder.name)
        log.write_text(answer["log"])
        return f"{safe(answer['reason'])} (see '{log}')"


class _Attempt:
    """A run, how often it was tried, and what became of that."""

    def __init__(self, run: Run) -> None:
        self.run, self.number = run, 0
        self.lost = ""  # why its last worker is gone
        self.warnings: list[str] = []


class _Cluster:
    """The tasks that are under way, and an actor that they ask whether to stop."""

    def __init__(self) -> None:
        import ray

        self.running: dict[Any, _Attempt] = {}
        self._stop = ray.remote(num_cpus=0, max_restarts=-1)(_Stop).remote()
        self._task = ray.remote(max_retries=0)(_perform)

    def submit(self, attempt: _Attempt, job_settings: dict[str, Any]) -> None:
        """Begin the run's folder here, so that it is the driver's own, and send it to a worker."""
        run, attempt.number = attempt.run, attempt.number + 1
        chosen = run.experiment
        threads = thread_count(chosen.threads)
        run = replace(run, experiment=replace(chosen, threads=threads))  # a worker may have other cores
        origin = Origin.of(chosen.dataset, directed=chosen.directed)
        with RunFolder(run.folder, run.settings, origin=origin).open(wait=True):
            sent = pack(run.folder)
        job = run.job(settings=dict(run.settings), **job_settings)
        needs = {"num_cpus": threads, "num_gpus": int(chosen.device.startswith("cuda")), "name": run.folder.name}
        self.running[self._task.options(**needs).remote(job, sent, self._stop)] = attempt

    def answers(self) -> Iterator[tuple[_Attempt, dict[str, Any] | Exception]]:
        """What tasks have sent back, or why they cannot any more."""
        import ray

        if not self.running:
            return
        done, _ = ray.wait(list(self.running), num_returns=1, timeout=_LOOK_EVERY)
        for task in done:
            attempt = self.running.pop(task)
            try:
                yield attempt, ray.get(task)
            except ray.exceptions.RayError as error:
                yield attempt, error

    def ask_to_stop(self) -> None:
        """Let every run stop after its epoch; said again and again, as an actor that was lost has forgotten it."""
        self._stop.ask.remote()

    def end(self) -> None:
        """End what is still under way, and the actor."""
        import ray

        with contextlib.suppress(Exception):  # the cluster may be gone
            for task in self.running:
                ray.cancel(task, force=True)
            ray.kill(self._stop)


class _Stop:
    """Knows whether runs are to stop; it is asked by each run, and answers when they are."""

    def __init__(self) -> None:
        import asyncio

        self._event = asyncio.Event()

    async def ask(self) -> None:
        self._event.set()

    async def asked(self) -> None:
        await self._event.wait()


def _perform(job: dict[str, Any], sent: dict[str, bytes], stop: Any) -> dict[str, Any]:
    """The task itself, on a worker."""
    return perform(job, sent, lambda: _wait_for(stop))


def _wait_for(stop: Any) -> None:
    """Until runs are to stop, or who knows it is gone for good; one whose worker was lost is begun again by Ray."""
    import ray

    while True:
        try:
            ray.get(stop.asked.remote())
            return
        except ray.exceptions.ActorUnavailableError:
            time.sleep(_LOOK_EVERY)


def ray_at(address: str | None) -> MakeEngine:
    """How an engine for the cluster at an address is made."""
    return functools.partial(RayEngine, address=address)
