#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -p short
#SBATCH -A project
#SBATCH -n 1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH -t 02:00:00
source ~/env/bin/activate
export OMP_NUM_THREADS=1
python -m distributed.cli.dask_worker tcp://scheduler --name dummy --nthreads 1 --memory-limit 1.86GiB --nworkers 4 --nanny --death-timeout 60
