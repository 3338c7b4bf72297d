#!/bin/bash
#SBATCH --job-name=instar-shard
#SBATCH --output=%x-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=04:00:00
# One shard of a run: SHARDS FOLDER SYSTEM SUITE DATASET [OPTION of `instar run`]...
#
# How many shards there are is an argument. SLURM_ARRAY_TASK_COUNT would be 2 where two of 64 are submitted again.
set -euo pipefail

shards=$1 folder=$2
shift 2
cpus=${SLURM_CPUS_PER_TASK:-1}
export SRUN_CPUS_PER_TASK=$cpus # srun does not take it from sbatch any more

exec srun instar run --workers "$cpus" --shard "$SLURM_ARRAY_TASK_ID/$shards" --out "$folder" "$@"
