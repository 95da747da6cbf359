"""`anyorder compare`: several algorithms on one problem."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from anyorder.cli.common import check_folder, draw, echo, errors
from anyorder.cli.problems import problem as chosen_problem
from anyorder.strategies.policy.engines import ENGINES

if TYPE_CHECKING:
    from anyorder.bench.compare import Comparison


@click.command()
@click.argument("problem")
@click.option("--algorithms", required=True, metavar="A,B,...",
              help="Names such as policy:paper, ils or tabu, separated by commas.")  # fmt: skip
@click.option("--runs", type=int, default=10, show_default=True, help="Runs of each.")
@click.option("--budget", type=int, default=1_000, show_default=True, help="Evaluations of a run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the first run.")
@click.option("--engine", default="auto", show_default=True,
              type=click.Choice(["auto", *ENGINES]), help="What computes the policy.")  # fmt: skip
@click.option("-o", "--output", "plot", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write a convergence figure here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def compare(
    problem: str, algorithms: str, runs: int, budget: int, seed: int, engine: str,
    plot: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run several algorithms on a built-in PROBLEM, with the same seeds and budget."""
    from tqdm import tqdm

    from anyorder.bench import compare as comparison

    chosen = [name.strip() for name in algorithms.split(",")]
    with errors():
        check_folder("--output", plot)
        instance = chosen_problem(problem, {})
        with tqdm(total=len(chosen) * runs, unit="run", disable=None, delay=2.0) as bar:
            result = comparison.compare(instance, chosen, runs, budget, seed, engine, bar.update)
    if as_json:
        facts = {"problem": result.problem, "runs": runs, "budget": budget, "seed": seed}
        echo(json.dumps({**facts, "table": result.rows()}))
    else:
        echo(f"{result.problem}, {runs} runs of {budget} evaluations, seeds from {seed}")
        echo(_table(result))
    draw(result, plot)


def _table(result: Comparison) -> str:
    lines = [f"{'algorithm':<32}{'mean':>12}{'sd':>12}{'rank':>6}{'p':>10}{'s a run':>9}"]
    for row in result.rows():
        p = "" if row["p"] is None else f"{row['p']:.2g}"
        lines.append(f"{row['algorithm']:<32}{row['mean']:>12.6g}{row['sd']:>12.3g}"
                     f"{row['rank']:>6}{p:>10}{row['seconds']:>9.2f}")  # fmt: skip
    return "\n".join([*lines, "p: Mann-Whitney, two-sided, against rank 1"])
