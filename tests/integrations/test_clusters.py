"""The pages on clusters, as far as one machine allows: local workers in the place of theirs."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao

ROOT = Path(__file__).parent.parent.parent


def write_page(name: str, folder: Path) -> Path:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    (folder / "page.py").write_text(code, encoding="utf-8")
    return folder / "page.py"


@contextlib.contextmanager
def local_workers(given: dict[str, Any], script: Path) -> Iterator[Any]:
    """A cluster of two processes that takes what one of another kind takes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        cluster.adapt = lambda **bounds: given.update(adapt=bounds) or cluster.scale(2)
        yield cluster


@pytest.mark.slow
def test_the_script_for_slurm_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the package's own cluster of local jobs, which it starts as scripts, as SLURM would."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    from dask_jobqueue.local import LocalCluster

    given: dict[str, Any] = {}

    def cluster(queue: str, account: str, **options: Any) -> Any:
        given.update(queue=queue, account=account, walltime=options.pop("walltime"))
        options.update(job_script_prologue=[], python=sys.executable)  # it has no shell
        options.update(cores=2, processes=2, log_directory=str(tmp_path))
        return LocalCluster(**options, scheduler_options={"dashboard_address": None})

    monkeypatch.setattr(jobqueue, "SLURMCluster", cluster)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(write_page("slurm.md", tmp_path)), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "5.0"
    assert given == {"queue": "short", "account": "project", "walltime": "02:00:00"}
    assert (~ao.load(tmp_path / "run.db").cached).sum() == 60


def test_the_job_that_slurm_gets(tmp_path: Path) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    page = write_page("slurm.md", tmp_path).read_text(encoding="utf-8")
    arguments = re.search(r"SLURMCluster\((.*?)\n    \) as", page, re.DOTALL)
    assert arguments is not None
    options = eval(f"dict({arguments[1]})")
    with jobqueue.SLURMCluster(
        **options, python="python", interface=None, scheduler_options={"dashboard_address": None}
    ) as cluster:
        script = re.sub(r"tcp://\S+", "tcp://scheduler", cluster.job_script())
    script = re.sub(r"--name \S+", "--name dummy", script)
    expected = ROOT / "tests" / "data" / "slurm_job.sh"
    if os.environ.get("ANYORDER_WRITE"):
        expected.write_text(script, encoding="utf-8")
    assert script == expected.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_script_for_kubernetes_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = pytest.importorskip("dask_kubernetes.operator")
    given: dict[str, Any] = {}

    def cluster(custom_cluster_spec: dict[str, Any], namespace: str) -> Any:
        given.update(spec=custom_cluster_spec, namespace=namespace)
        return local_workers(given, tmp_path)

    monkeypatch.setattr(operator, "KubeCluster", cluster)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(write_page("kubernetes.md", tmp_path)), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "5.0"
    worker = given["spec"]["spec"]["worker"]
    assert given["spec"]["kind"] == "DaskCluster"
    assert worker["replicas"] == 0
    (container,) = worker["spec"]["containers"]
    assert container["image"] == "registry.example.org/me/tuning:1"
    assert container["args"][:3] == ["dask-worker", "--nthreads", "1"]
    assert given["adapt"] == {"minimum": 1, "maximum": 20}


@pytest.mark.slow
def test_submitit_evaluates_in_jobs_of_its_own(tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path)
    executor.update_parameters(timeout_min=5)
    space = ao.Space.binary(6)
    result = ao.maximize(
        lambda x: float(x.sum()), space, 4, executor=executor, workers=2, algorithm="tabu", seed=0
    )
    assert result.evaluations == 4
    assert result.failures == 0
    failed = ao.maximize(
        lambda x: 1 / 0, space, 2, executor=executor, workers=2, algorithm="tabu", seed=0,
        on_failure="worst",
    )  # fmt: skip
    assert failed.failures == 2
    assert "ZeroDivisionError" in (failed.history.errors[0] or "")
