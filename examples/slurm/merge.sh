#!/bin/bash
#SBATCH --job-name=instar-merge
#SBATCH --output=%x-%j.log
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
# Join the shards of a run: SHARDS FOLDER. Shards that are missing or not finished are named.
set -euo pipefail

shards=$1 folder=$2
exec srun instar merge "$folder"-*-of-"$shards" --out "$folder"
