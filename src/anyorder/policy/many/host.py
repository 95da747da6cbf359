"""The driver for engines with NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anyorder.policy.many.base import Ledger, Log, Task
from anyorder.policy.many.objective import Ints, Objective
from anyorder.strategies.policy.absent import hide_absent
from anyorder.strategies.policy.critic import Critic
from anyorder.strategies.policy.engines import Engine, Policy
from anyorder.strategies.policy.learned_order import LearnedOrder
from anyorder.strategies.policy.penalty import Penalty


def run_host(engine: Engine, objective: Objective, task: Task, bar: Any) -> Log:
    """Do all runs, one generation of each at a time; after Ctrl-C return what there is."""
    ledger = Ledger(task)
    critic = None if task.config.critic is None else Critic(engine.model, engine.name)
    learns = task.config.generation_order == "learned"
    order = LearnedOrder(engine.model, engine.name) if learns else None
    adaptive = task.config.kl_target is not None
    penalty = Penalty(engine, len(ledger.seeds)) if adaptive else None
    try:
        policy = engine.fresh(ledger.seeds, [0] * len(ledger.seeds))
        twin = None if critic is None else critic.fresh(ledger.seeds, [0] * len(ledger.seeds))
        scores = None if order is None else order.fresh(ledger.seeds, [0] * len(ledger.seeds))
        while len(ledger.active):
            draw = ledger.draw()
            if order is not None and scores is not None:
                draw = order.draw_orders(scores, draw)
            points, old = engine.sample(policy, draw)
            codes = task.digits.join(points)
            if task.space.conditional:
                codes = task.space.canonical(codes.reshape(-1, len(task.space)))
                codes = codes.reshape(*points.shape[:2], -1)
                points, old = hide_absent(
                    task.space, task.digits, engine, policy, draw, points, old
                )
            evaluated = objective.values(codes, ledger.active)
            rows = ledger.take(points, codes, evaluated)
            _show(bar, ledger, int((~np.isnan(evaluated.values)).sum()))
            if evaluated.interrupted or not len(rows):
                break
            values = evaluated.values
            if len(rows) < len(points):
                policy = _rows(policy, rows)
                twin = None if twin is None else _rows(twin, rows)
                scores = None if scores is None else _rows(scores, rows)
                points, old, values = points[rows], old[rows], values[rows]
            batch = ledger.batch(points, old, values)
            if critic is not None and twin is not None:
                gain = critic.advantages(
                    twin, batch.seeds, batch.generations, points, task.sign * values, batch.stamps
                )
                batch = replace(batch, advantages=gain)
            if penalty is not None:
                engine.train(policy, penalty.scale(batch, ledger.active))
                penalty.follow(policy, batch, ledger.active)
            elif order is not None and scores is not None:
                order.train(policy, scores, batch)
            else:
                engine.train(policy, batch)
            restarting = ledger.finish_training()
            if len(restarting):
                _restart(engine.fresh, policy, ledger, restarting)
                if penalty is not None:
                    penalty.restart(ledger.active[restarting])
                if critic is not None and twin is not None:
                    _restart(critic.fresh, twin, ledger, restarting)
                if order is not None and scores is not None:
                    _restart(order.fresh, scores, ledger, restarting)
    except KeyboardInterrupt:
        pass  # the log says which runs have not finished
    return ledger.log


def _rows(policy: Policy, rows: Ints) -> Policy:
    return Policy(policy.theta[rows], policy.m[rows], policy.v[rows], policy.steps[rows])


def _restart(
    start: Callable[[Sequence[int], Sequence[int]], Policy],
    policy: Policy,
    ledger: Ledger,
    rows: Ints,
) -> None:
    runs = ledger.active[rows]
    seeds = [ledger.task.seeds[r] for r in runs]
    fresh = start(seeds, [len(ledger.log.restarts[r]) for r in runs])
    policy.theta[rows], policy.m[rows], policy.v[rows] = fresh.theta, fresh.m, fresh.v
    policy.steps[rows] = fresh.steps


def _show(bar: Any, ledger: Ledger, finished: int) -> None:
    log = ledger.log
    bar.update(finished)
    best = log.best_values[log.evaluations > 0]
    mean = f"mean best {best.mean():.6g}, " if np.isfinite(best).all() and len(best) else ""
    restarts = sum(map(len, log.restarts))
    bar.set_postfix_str(
        f"{mean}{len(ledger.active)} runs active, restarts {restarts}", refresh=False
    )
