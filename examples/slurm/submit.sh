#!/bin/bash
# Submit a run in shards, and a job that merges them when all of them are done.
#
#   examples/slurm/submit.sh SHARDS FOLDER SYSTEM SUITE DATASET [OPTION of `instar run`]...
#   examples/slurm/submit.sh 64 runs/first mediapipe-holistic met-pose photos/
set -euo pipefail

if [ "$#" -lt 5 ]; then
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
shards=$1 folder=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

array=$(sbatch --parsable --array="1-$shards" "$here/shard.sh" "$shards" "$folder" "$@")
sbatch --dependency="afterok:${array%%;*}" --kill-on-invalid-dep=yes "$here/merge.sh" "$shards" "$folder"
