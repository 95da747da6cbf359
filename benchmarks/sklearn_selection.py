"""`AnyOrderSelector` and `SequentialFeatureSelector`, at equal numbers of fits.

    python benchmarks/sklearn_selection.py run
    python benchmarks/sklearn_selection.py table

Both select features of `breast_cancer` (30) and `digits` (64) for naive Bayes, on the training half
of ten random splits, by five-fold cross-validation. `forward` selects half of the features,
scikit-learn's default; its number of fits is the budget of the others. `best on the way` continues
up to that number, and takes the best selection that it met. `anyorder` may select any number of
features, and `anyorder, half` selects half of them. `run` appends missing runs to
results/sklearn_selection.csv: the score of the selection in cross-validation, and on the other
half, which no search sees.
"""

from __future__ import annotations

import argparse
import csv
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread a process

from collections import defaultdict  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from common import RESULTS, machine  # noqa: E402
from scipy.stats import ttest_1samp  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_digits  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from anyorder.integrations.sklearn import AnyOrderSelector  # noqa: E402

PATH = RESULTS / "sklearn_selection.csv"
FIELDS = ("data", "model", "selector", "split", "features", "fits", "cv_score", "test_score")
DATA = {"breast_cancer": load_breast_cancer, "digits": load_digits}
MODELS = ("naive Bayes",)
SELECTORS = ("forward", "best on the way", "anyorder", "anyorder, half")
SPLITS, FOLDS = 10, 5


def selections(n: int) -> int:
    """How many selections forward selection of half of n features evaluates."""
    return sum(n - k for k in range(n // 2))


class Scores:
    """Cross-validated accuracy of Gaussian naive Bayes, from the likelihoods of single features.

    They are computed once, so that a selection takes less than a millisecond. `measure` compares
    what is selected with scikit-learn's score, which the file has.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self.n, self._parts = X.shape[1], []
        for train, test in StratifiedKFold(FOLDS).split(X, y):
            smoothing = 1e-9 * X[train].var(axis=0).max()
            logs, priors = [], []
            for label in np.unique(y):
                own = X[train][y[train] == label]
                mean, spread = own.mean(axis=0), own.var(axis=0) + smoothing
                distance = (X[test] - mean) ** 2 / spread
                logs.append(-0.5 * (np.log(2 * np.pi * spread) + distance))
                priors.append(np.log(len(own) / len(train)))
            self._parts.append((np.array(logs), np.array(priors), y[test]))

    def __call__(self, mask: Any) -> float:
        """The mean accuracy of the folds."""
        x = np.asarray(mask, float)
        found = [
            ((logs @ x + priors[:, None]).argmax(axis=0) == y).mean()
            for logs, priors, y in self._parts
        ]
        return float(np.mean(found))


def forward(score: Scores, on_the_way: bool) -> Any:
    """What `SequentialFeatureSelector` selects, or the best selection that it meets."""
    n = score.n
    budget, chosen, best = selections(n), np.zeros(n, bool), (-np.inf, np.zeros(n, bool))
    while budget and (on_the_way or chosen.sum() < n // 2):
        step: tuple[float, int] = (-np.inf, 0)
        for k in np.flatnonzero(~chosen)[:budget]:
            mask = chosen.copy()
            mask[k] = True
            step, budget = max(step, (score(mask), -k)), budget - 1
        chosen[-step[1]] = True
        best = max(best, (step[0], chosen.copy()), key=lambda one: one[0])
    return best[1] if on_the_way else chosen


def support(selector: str, score: Scores, split: int) -> Any:
    """Which features are selected."""
    if not selector.startswith("anyorder"):
        return forward(score, on_the_way=selector == "best on the way")
    size = score.n // 2 if selector == "anyorder, half" else None
    search = AnyOrderSelector(GaussianNB(), n_features_to_select=size, random_state=split)
    return search._select(score.n, score, selections(score.n))[0]


def measure(data: str, model: str, selector: str, split: int) -> dict[str, Any]:
    """One selection, and its scores."""
    X, y = DATA[data](return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=split, stratify=y)
    scaler = StandardScaler().fit(X)
    X, X_test, chosen = scaler.transform(X), scaler.transform(X_test), GaussianNB()
    score = Scores(X, y)
    mask = support(selector, score, split)
    inside = cross_val_score(chosen, X[:, mask], y, cv=FOLDS).mean()
    if abs(inside - score(mask)) > 0.005:  # scikit-learn smooths by the selected features only
        raise ValueError(f"{selector} has score {score(mask)}, scikit-learn {inside}")
    outside = chosen.fit(X[:, mask], y).score(X_test[:, mask], y_test)
    return {
        "data": data, "model": model, "selector": selector, "split": split,
        "features": int(mask.sum()), "fits": FOLDS * selections(X.shape[1]),
        "cv_score": round(float(inside), 6), "test_score": round(float(outside), 6),
    }  # fmt: skip


def read() -> list[dict[str, str]]:
    """The rows that are there."""
    if not PATH.exists():
        return []
    with PATH.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run() -> None:
    """Append what is missing."""
    done = {(r["data"], r["model"], r["selector"], int(r["split"])) for r in read()}
    facts = {**machine(), "sklearn": sklearn.__version__}
    wanted = [
        (data, model, selector, split)
        for model in MODELS
        for data in DATA
        for split in range(SPLITS)
        for selector in SELECTORS
    ]
    for key in wanted:
        if key not in done:
            row = {**measure(*key), **facts}
            fresh = not PATH.exists()
            with PATH.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, [*FIELDS, *facts], lineterminator="\n")
                if fresh:
                    writer.writeheader()
                writer.writerow(row)
            print(*key, row["cv_score"], row["test_score"], flush=True)


def table() -> None:
    """Means of the splits, and differences to `anyorder` split by split."""
    cells: dict[tuple[str, str], dict[str, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for row in read():
        values = [float(row[key]) for key in ("features", "cv_score", "test_score")]
        cells[row["data"], row["model"]][row["selector"]][int(row["split"])] = values
    print("| data, model, fits | selector | features | cross-validation | other half |")
    print("| --- | --- | --- | --- | --- |")
    for (data, model), selectors in cells.items():
        fits = FOLDS * selections(DATA[data](return_X_y=True)[0].shape[1])
        for selector, splits in selectors.items():
            both = sorted(splits.keys() & selectors["anyorder"].keys())
            mine = np.array([selectors["anyorder"][k] for k in both])
            theirs = np.array([splits[k] for k in both])
            texts = [f"{theirs[:, 0].mean():.1f}"]
            for k in (1, 2):
                text, gaps = f"{theirs[:, k].mean():.4f}", mine[:, k] - theirs[:, k]
                if np.ptp(gaps) > 0:
                    text += f" (p = {ttest_1samp(gaps, 0).pvalue:.2g})"
                texts.append(text)
            label = f"{data}, {model}, {fits:,}"
            print(f"| {label} | {selector} | {' | '.join(texts)} |")


def main() -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "table"))
    {"run": run, "table": table}[parser.parse_args().action]()


if __name__ == "__main__":
    main()
