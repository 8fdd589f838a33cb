#!/usr/bin/env bash
# Trains one model on two machines. Start it on both, with the name of the first one:
#
#     ./two_machines.sh FIRST_MACHINE shakespeare --model lstm --run /shared/run
#
# Both machines see the same files: the data and the folder of the run. RANKS_PER_MACHINE says how many processes
# a machine runs (1 if not set), PORT where the first machine listens.
set -euo pipefail

first=$1
port=${PORT:-29400}
shift
# On the first machine, torchrun would wait at a port that another program uses. On the second one, this address
# is not its own, so nothing is said.
python - "$first" "$port" << 'CHECK'
import errno, socket, sys

host, port = sys.argv[1], int(sys.argv[2])
try:
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(address[0]) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address[4])
except socket.gaierror as error:
    sys.exit(f"{host}: {error.strerror}: give the name of the first machine")
except OSError as error:
    if error.errno == errno.EADDRINUSE:
        sys.exit(f"port {port} is in use: set another PORT on both machines")
CHECK
exec torchrun \
    --nnodes 2 \
    --nproc-per-node "${RANKS_PER_MACHINE:-1}" \
    --rdzv-id foveal \
    --rdzv-backend c10d \
    --rdzv-endpoint "$first:$port" \
    -m -- foveal train "$@"
