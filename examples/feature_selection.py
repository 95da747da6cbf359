"""Feature selection: which columns a classifier should use, chosen by cross-validation.

The data are scikit-learn's 30 measurements of breast tumours, with 30 columns of noise mixed in.
The classifier looks at the five nearest neighbours and cannot tell useful columns from noise. The
function is its accuracy in five-fold cross-validation on the training set. This accuracy is
optimistic, because it was used to choose among many subsets; the test set, which no search sees,
gives a fair comparison. Requires scikit-learn: `pip install scikit-learn`.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import anyorder as ao
from anyorder.plotting import convergence

try:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import cross_val_score, train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
except ImportError:
    sys.exit("this example needs scikit-learn: pip install scikit-learn")

NOISE = 30


@cache  # once in each worker process
def data() -> tuple[list[str], list[np.ndarray]]:
    """Names of the columns; training and test columns, training and test answers."""
    table = load_breast_cancer()
    noise = np.random.default_rng(0).normal(size=(len(table.data), NOISE))
    names = [*map(str, table.feature_names), *(f"noise {k}" for k in range(NOISE))]
    parts = train_test_split(
        np.hstack([table.data, noise]), table.target, test_size=0.4, random_state=0
    )
    return names, parts


def classifier() -> Any:
    # a tree, because the brute-force search starts threads that would compete for the cores
    return make_pipeline(StandardScaler(), KNeighborsClassifier(5, algorithm="kd_tree"))


def chosen(point: dict[str, bool]) -> list[int]:
    return [k for k, name in enumerate(data()[0]) if point[name]]


def accuracy(point: dict[str, bool]) -> float:
    """In cross-validation on the training set: what is optimised."""
    columns = chosen(point)
    if not columns:
        raise ao.Infeasible("no columns")
    _, (train, _, answers, _) = data()
    return float(cross_val_score(classifier(), train[:, columns], answers, cv=5).mean())


def on_the_test_set(point: dict[str, bool]) -> float:
    _, (train, test, answers, truth) = data()
    columns = chosen(point)
    return float(classifier().fit(train[:, columns], answers).score(test[:, columns], truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/feature_selection.png"))
    parser.add_argument("--quick", action="store_true", help="a small one, to see that it works")
    options = parser.parse_args()
    budget = 40 if options.quick else options.budget

    names, _ = data()
    space = ao.Space({name: ao.Binary() for name in names})
    result = ao.maximize(accuracy, space, budget, seed=options.seed, workers=2, on_failure="worst")

    rng = np.random.default_rng(options.seed)
    subsets = [dict(zip(names, row, strict=True)) for row in rng.random((budget, len(names))) < 0.5]
    scores = [accuracy(subset) for subset in subsets]

    head = f"{budget} evaluations each"
    print(f"{head:<32}{'columns':>8}{'cross-validation':>18}{'test set':>10}")
    for label, point in {
        "all columns": dict.fromkeys(names, True),
        "best of random subsets": subsets[int(np.argmax(scores))],
        "anyorder": result.best,
    }.items():
        row = f"{len(chosen(point)):>8}{accuracy(point):>18.4f}{on_the_test_set(point):>10.4f}"
        print(f"{label:<32}{row}")
    kept = sum(name.startswith("noise") for name in names if result.best[name])
    print(f"Of the {len(chosen(result.best))} columns anyorder kept, {kept} are noise.")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    runs = {"anyorder": result, "random subsets": scores}
    convergence(runs, options.out, "Feature selection: accuracy in cross-validation")
    print(f"Figure: {options.out}")


if __name__ == "__main__":  # the workers import this file
    main()
