"""A launcher that starts N processes that know nothing of each other, as a wrong mpiexec does."""

import subprocess
import sys

number, command = int(sys.argv[1]), sys.argv[2:]
started = [subprocess.Popen(command) for _ in range(number)]
sys.exit(max(process.wait() for process in started))
