"""`AnyOrderSampler` beside the samplers of Optuna and OptunaHub, in studies of Optuna.

    python benchmarks/optuna_sampler.py run --seeds 10
    python benchmarks/optuna_sampler.py run --samplers GP --seeds 2
    python benchmarks/optuna_sampler.py table
    python benchmarks/optuna_sampler.py figure
    python benchmarks/optuna_sampler.py time

`run` appends missing runs to results/optuna_sampler.csv: after each number of trials the best
value, the number of trials that repeat an earlier one, and the CPU milliseconds of the study per
trial, without those of the function. A run ends early after `--limit` seconds, with the trials that
it has done. This requires optuna, optunahub, cmaes, scipy, and torch for GP. CatCMAwM is downloaded
by optunahub, or read from a clone of optuna/optunahub-registry (`--hub`).

Seed k is instance k of a problem, of size 60: an NK landscape with K 3, MaxSAT and a feature
selection of binary variables; layers of three kinds of networks (`conditional`); eight rotated
floats whose centre is moved by five categories (`mixed`); and the landscape with eight workers,
each with its own sampler and study on the same storage. `time` measures the sampler alone:
results/optuna_sampler_time.csv.
"""

from __future__ import annotations

import argparse
import csv
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a process

import time  # noqa: E402
import warnings  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import optuna  # noqa: E402
from common import RESULTS, machine, write  # noqa: E402
from small_budgets import columns  # noqa: E402

import anyorder as ao  # noqa: E402
from anyorder.integrations.optuna import AnyOrderSampler  # noqa: E402

PATH = RESULTS / "optuna_sampler.csv"
FIGURE = RESULTS.parent / "docs" / "optuna.png"
FIELDS = ("problem", "sampler", "seed", "trials", "best", "repeats", "own_ms")
MARKS = (50, 100, 200, 300, 500, 1_000)
SIZE, WORKERS = 60, 8

Objective = Callable[[Any], float]


# --- problems -----------------------------------------------------------------------------------


def binary(f: Callable[[Any], Any], whole: bool) -> Objective:
    """A function of 60 binary variables: categories, or integers for samplers without them."""

    def objective(trial: Any) -> float:
        if whole:
            point = [trial.suggest_int(f"x{k}", 0, 1) for k in range(SIZE)]
        else:
            point = [trial.suggest_categorical(f"x{k}", [0, 1]) for k in range(SIZE)]
        return float(f(np.array(point)))

    return objective


def nk(seed: int, whole: bool) -> Objective:
    return binary(ao.problems.get(f"nk:n={SIZE},k=3,seed={seed}"), whole)


def maxsat(seed: int, whole: bool) -> Objective:
    return binary(ao.problems.get(f"maxsat:n={SIZE},ratio=4.3,seed={seed}"), whole)


def features(seed: int, whole: bool) -> Objective:
    return binary(columns(np.random.default_rng(seed), SIZE)[1], whole)


def conditional(seed: int, whole: bool) -> Objective:
    """Three kinds of networks with up to eight layers; neighbouring layers interact."""
    rng = np.random.default_rng(seed)
    most, widths, kinds = {"a": 8, "b": 6, "c": 4}, 6, 3
    alone = {b: rng.normal(0, 1, (8, widths, kinds)) for b in most}
    pairs = {b: rng.normal(0, 1, (8, widths, kinds, widths, kinds)) for b in most}
    price = {b: float(rng.uniform(0.5, 1.5)) for b in most}

    def objective(trial: Any) -> float:
        branch = trial.suggest_categorical("kind", list(most))
        layers = trial.suggest_int(f"{branch} layers", 1, most[branch])
        total, last = 0.0, None
        for k in range(layers):
            here = (
                trial.suggest_int(f"{branch} width {k}", 0, widths - 1),
                trial.suggest_categorical(f"{branch} activation {k}", list(range(kinds))),
            )
            total += alone[branch][(k, *here)] - price[branch]
            if last is not None:
                total += pairs[branch][(k, *last, *here)]
            last = here
        return total

    return objective


def mixed(seed: int, whole: bool) -> Objective:
    """Eight rotated floats of condition 100; each of five categories moves the centre."""
    rng = np.random.default_rng(seed)
    n, categories, choices = 8, 5, 4
    rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
    scale, centre = np.geomspace(1, 100, n), rng.uniform(-2, 2, n)
    moves, cost = rng.normal(0, 1, (categories, choices, n)), rng.uniform(0, 2, (categories, 4))

    def objective(trial: Any) -> float:
        x = np.array([trial.suggest_float(f"x{k}", -5, 5) for k in range(n)])
        chosen = [trial.suggest_categorical(f"c{k}", list("abcd")) for k in range(categories)]
        at = ["abcd".index(c) for c in chosen]
        middle = centre + sum(moves[k, c] for k, c in enumerate(at))
        z = rotation @ (x - middle)
        price = sum(cost[k, c] for k, c in enumerate(at))
        return -float(np.sqrt(np.mean(scale * z * z)) + price)

    return objective


PROBLEMS: dict[str, Callable[[int, bool], Objective]] = {
    "nk": nk, "maxsat": maxsat, "features": features, "conditional": conditional, "mixed": mixed,
    "workers": nk,
}  # fmt: skip
BINARY = ("nk", "maxsat", "features", "workers")


# --- samplers -----------------------------------------------------------------------------------


def catcma(seed: int, hub: str | None) -> Any:
    import optunahub

    name = "samplers/catcmawm"
    if hub is None:
        return optunahub.load_module(name).CatCmawmSampler(seed=seed)
    return optunahub.load_local_module(name, registry_root=hub).CatCmawmSampler(seed=seed)


SAMPLERS: dict[str, Callable[[int, str | None], Any]] = {
    "AnyOrder": lambda seed, hub: AnyOrderSampler(seed),
    "TPE": lambda seed, hub: optuna.samplers.TPESampler(seed=seed),
    "TPE group": lambda seed, hub: optuna.samplers.TPESampler(
        seed=seed, multivariate=True, group=True
    ),
    "CMA-ES": lambda seed, hub: optuna.samplers.CmaEsSampler(seed=seed, with_margin=True),
    "CatCMAwM": catcma,
    "GP": lambda seed, hub: optuna.samplers.GPSampler(seed=seed),
}
# Those that fit. Where all trials have the same parameters, `group` changes nothing; CMA-ES has no
# categories, and it, CatCMAwM and GP search only parameters that all trials have.
WHERE = {
    "AnyOrder": tuple(PROBLEMS), "TPE": tuple(PROBLEMS), "TPE group": ("conditional",),
    "CMA-ES": BINARY, "CatCMAwM": (*BINARY, "mixed"),
    "GP": ("nk", "maxsat", "features", "mixed"),
}  # fmt: skip
TRIALS = {"GP": 500}  # instead of 1,000


# --- runs ---------------------------------------------------------------------------------------


def run_one(
    name: str, sampler: str, seed: int, trials: int, given: argparse.Namespace
) -> list[Any]:
    """Rows of one run, one for each number of trials that it reached."""
    objective = PROBLEMS[name](seed, sampler == "CMA-ES")
    storage = optuna.storages.InMemoryStorage()
    count = WORKERS if name == "workers" else 1
    studies = [
        optuna.create_study(
            storage=storage, study_name="one", load_if_exists=True, direction="maximize",
            sampler=SAMPLERS[sampler](seed * WORKERS + k, given.hub),
        )
        for k in range(count)
    ]  # fmt: skip
    seen: set[Any] = set()
    running: list[tuple[Any, Any, float]] = []
    best, spent, rows = -np.inf, 0.0, []
    start, ends = time.process_time(), time.monotonic() + given.limit
    for k in range(trials + count - 1):
        if k < trials:
            study = studies[k % count]
            trial = study.ask()
            before = time.process_time()
            value = objective(trial)  # asks for the parameters, so this is not the function alone
            running.append((study, trial, value))
            spent += evaluation_time(objective, trial, time.process_time() - before)
        if len(running) == count or k >= trials:
            study, trial, value = running.pop(0)
            study.tell(trial, value)
            best = max(best, value)
            seen.add(tuple(sorted(trial.params.items())))
            done = k + 2 - count
            if done in MARKS:
                own = 1e3 * (time.process_time() - start - spent) / done
                row = (name, sampler, seed, done, best, done - len(seen), round(own, 3))
                rows.append(row)
        if time.monotonic() > ends:
            break
    return rows


def evaluation_time(objective: Objective, trial: Any, most: float) -> float:
    """The CPU time of the function alone, of the same parameters again without a study."""
    before = time.process_time()
    objective(optuna.trial.FixedTrial(trial.params))
    return min(2 * (time.process_time() - before), most)  # this one is no part of the study


def run(given: argparse.Namespace) -> None:
    """Run what is missing, and append it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    done = {(row["problem"], row["sampler"], int(row["seed"])) for row in read()}
    facts = {**machine(), "optuna": optuna.__version__}
    for sampler in given.samplers:  # so that compiling and importing are not measured
        for name in WHERE[sampler]:
            run_one(name, sampler, 10**6, 30, given)
    with PATH.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow([*FIELDS, *facts])
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for name in PROBLEMS:
                for sampler in given.samplers:
                    if name in WHERE[sampler] and (name, sampler, seed) not in done:
                        trials = TRIALS.get(sampler, 1_000)
                        rows = run_one(name, sampler, seed, trials, given)
                        writer.writerows([*row, *facts.values()] for row in rows)
                        file.flush()
                        print(*rows[-1] if rows else (name, sampler, seed, "nothing"), flush=True)


def read() -> list[dict[str, str]]:
    """All rows so far."""
    if not PATH.exists():
        return []
    with PATH.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- what comes out of it -----------------------------------------------------------------------


Cells = dict[tuple[str, int], dict[str, dict[int, dict[str, str]]]]


def cells() -> Cells:
    """Rows by problem and trials, sampler and seed."""
    found: Cells = defaultdict(lambda: defaultdict(dict))
    for row in read():
        of = found[row["problem"], int(row["trials"])]
        of[row["sampler"]][int(row["seed"])] = row
    return found


def table(given: argparse.Namespace) -> None:
    """Means with standard errors; a star where AnyOrder is significantly above, a cross below."""
    found = cells()
    print("| problem | trials | sampler | seeds | best value | repeats | ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in PROBLEMS:
        for mark in given.marks:
            for sampler, of in found.get((name, mark), {}).items():
                best = {seed: float(row["best"]) for seed, row in of.items()}
                values = np.array(list(best.values()))
                error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
                ours = found[name, mark]["AnyOrder"]
                sign = "" if sampler == "AnyOrder" else verdict(best, ours)
                repeats = np.mean([int(row["repeats"]) for row in of.values()])
                ms = np.mean([float(row["own_ms"]) for row in of.values()])
                print(
                    f"| {name} | {mark:,} | {sampler} | {len(of)} | {values.mean():.4g} "
                    f"({error:.2g}){sign} | {repeats:.0f} | {ms:.1f} |"
                )


def verdict(others: dict[int, float], ours: dict[int, dict[str, str]]) -> str:
    """Whether the differences on the same instances have a mean that is not 0: a t-test, 5 %."""
    from scipy import stats

    shared = sorted(set(others) & set(ours))
    gaps = [float(ours[seed]["best"]) - others[seed] for seed in shared]
    if len(gaps) < 3 or stats.ttest_1samp(gaps, 0).pvalue > 0.05:
        return ""
    return " *" if np.mean(gaps) > 0 else " +"


def figure(given: argparse.Namespace) -> None:
    """Draw the means by the number of trials."""
    import matplotlib.pyplot as plt

    found = cells()
    colours = {name: f"C{k}" for k, name in enumerate(SAMPLERS)}
    drawn, axes = plt.subplots(2, 3, figsize=(10, 5.6), constrained_layout=True)
    for name, axis in zip(PROBLEMS, axes.flat, strict=True):
        for sampler, colour in colours.items():
            marks = [mark for mark in MARKS if sampler in found.get((name, mark), {})]
            all_values = [
                np.array([float(row["best"]) for row in found[name, mark][sampler].values()])
                for mark in marks
            ]
            if not marks:
                continue
            means = np.array([values.mean() for values in all_values])
            errors = np.array([v.std(ddof=1) / len(v) ** 0.5 if len(v) > 1 else 0
                               for v in all_values])  # fmt: skip
            axis.plot(marks, means, color=colour, label=sampler, marker=".")
            axis.fill_between(marks, means - errors, means + errors, color=colour, alpha=0.2, lw=0)
        axis.set(xscale="log", title=name)
        axis.set_xticks([50, 100, 200, 500, 1000], labels=["50", "100", "200", "500", "1,000"])
        axis.minorticks_off()
    for axis in axes[1]:
        axis.set_xlabel("trials")
    for axis in axes[:, 0]:
        axis.set_ylabel("best value")
    handles = {h.get_label(): h for axis in axes.flat for h in axis.get_lines()}
    drawn.legend(handles.values(), handles, loc="outside lower center", ncols=6, frameon=False)
    drawn.savefig(FIGURE, dpi=110)


# --- the sampler's own time ---------------------------------------------------------------------


class Timed:
    """What a sampler takes for the space and the point, in seconds."""

    def __init__(self, sampler: AnyOrderSampler) -> None:
        self.seconds: list[float] = []
        for name in ("infer_relative_search_space", "sample_relative"):
            setattr(sampler, name, self._timed(getattr(sampler, name)))

    def _timed(self, called: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            found = called(*arguments)
            self.seconds.append(time.process_time() - start)
            return found

        return timed

    def mean_ms(self, first: int, last: int) -> float:
        """Per trial, of those trials."""
        return 1e3 * sum(self.seconds[2 * first : 2 * last]) / (last - first)


def measure(given: argparse.Namespace) -> None:
    """Measure the first and the tenth thousand of trials, and how long a history takes."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for n, trials in ((100, 10_000), (1_000, 1_000)):
        problem = ao.problems.get(f"nk:n={n},k=3,seed=0")
        distributions = {f"x{k}": optuna.distributions.IntDistribution(0, 1) for k in range(n)}
        run_trials(problem, distributions, AnyOrderSampler(1), 30)  # compiles
        sampler = AnyOrderSampler(0)
        timed = Timed(sampler)
        study = run_trials(problem, distributions, sampler, trials)
        for first in range(0, trials, 1_000):
            rows.append({"variables": n, "what": f"trials {first + 1} to {first + 1_000}, each",
                         "cpu_ms": round(timed.mean_ms(first, first + 1_000), 3)})  # fmt: skip
            print(rows[-1])
        study.sampler = AnyOrderSampler(0)
        timed = Timed(study.sampler)
        study.ask(distributions)
        rows.append({"variables": n, "what": f"learning {trials} trials",
                     "cpu_ms": round(1e3 * sum(timed.seconds))})  # fmt: skip
        print(rows[-1])
    write("optuna_sampler_time.csv", rows)


def run_trials(problem: Any, distributions: Any, sampler: Any, trials: int) -> Any:
    study = optuna.create_study(sampler=sampler, direction="maximize")
    for _ in range(trials):
        trial = study.ask(distributions)
        study.tell(trial, float(problem(np.array([trial.params[name] for name in distributions]))))
    return study


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Samplers of Optuna.")
    parser.add_argument("action", choices=("run", "table", "figure", "time"))
    parser.add_argument("--samplers", nargs="+", default=[n for n in SAMPLERS if n != "GP"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--marks", nargs="+", type=int, default=[100, 1_000])
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a run")
    parser.add_argument("--hub", help="folder `package` of a clone of optuna/optunahub-registry")
    given = parser.parse_args(arguments)
    {"run": run, "table": table, "figure": figure, "time": measure}[given.action](given)


if __name__ == "__main__":
    main()
