#!/usr/bin/env bash
# Trains one model on two machines. Start it on both, with the name of the first one:
#
#     ./two_machines.sh FIRST_MACHINE shakespeare --model lstm --run /shared/run
#
# Both machines see the same files: the data and the folder of the run. RANKS_PER_MACHINE says how many processes
# a machine runs (1 if not set), PORT where the first machine listens.
set -euo pipefail

first=$1
shift
exec torchrun \
    --nnodes 2 \
    --nproc-per-node "${RANKS_PER_MACHINE:-1}" \
    --rdzv-id foveal \
    --rdzv-backend c10d \
    --rdzv-endpoint "$first:${PORT:-29400}" \
    -m -- foveal train "$@"
