# SPDX-License-Identifier: BSD-3-Clause
"""The workers of a job: ``python -m ofipy.executor``. Rank 0 runs the script, the other ranks serve it."""

from ofipy.executor import main_module
from ofipy.executor.pool import Pool
from ofipy.executor.worker import Worker
from ofipy.jobs.found import search
from ofipy.jobs.job import Job
from ofipy.jobs.join import job as join

__all__ = ["pool_of_job", "run_script", "size_of_job"]

_pool: Pool | None = None


def pool_of_job() -> Pool | None:
    """The pool that all executors of this process share; None: it has none."""
    return _pool


def size_of_job() -> int | None:
    """How many ranks the job has in which this process was started; 1 without one, None: only the launcher knows."""
    found = search().found
    return 1 if found is None else found.size


def run_script(*, module: str | None = None, path: str | None = None) -> int:
    """Do what this rank does.

    Parameters
    ----------
    module, path : str
        The script; one of them.

    Returns
    -------
    int
        The exit status.
    """
    global _pool
    job = join()
    if job.rank == 0:
        if job.size > 1:
            _pool = Pool(expected=job.size - 1, lasts=True)
            job.exchange(bytes(_pool.address))
        main_module.run("__main__", module=module, path=path)
        return 0
    return _serve(job, module, path)


def _serve(job: Job, module: str | None, path: str | None) -> int:
    main_module.load(main_module.Main(module=module, path=path))
    address = job.exchange(b"")[0]
    return Worker(address, name=f"rank {job.rank} on {job.hosts[job.rank]}").serve()
