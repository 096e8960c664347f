# shellcheck shell=bash
# Sourced by minicluster.sh: each daemon's command, and how one sees that it is ready.

start() { # NAME
    if is_node "$1"; then start_node "$1"; else "start_$1"; fi
}

start_munged() {
    local munge=$dir/munge
    [[ -s $munge/munge.key ]] || (umask 077 && head -c 1024 /dev/urandom >"$munge/munge.key")
    rm -f "$munge/munge.sock"
    # --force: also in a directory that munged finds too open, such as one in /tmp.
    launch munged munged --foreground --force --socket="$munge/munge.sock" --key-file="$munge/munge.key" \
        --pid-file="$munge/munged.pid" --log-file="$dir/log/munged.log" --seed-file="$munge/seed"
    ready munged test -S "$munge/munge.sock"
}

start_mariadbd() {
    if [[ ! -d $dir/db ]]; then
        rm -rf "$dir/db.new"
        mariadb-install-db --no-defaults --user="$user" --datadir="$dir/db.new" --skip-test-db \
            --auth-root-authentication-method=normal >"$dir/log/mariadbd.err" 2>&1 ||
            failed mariadbd "could not make its data directory"
        mv "$dir/db.new" "$dir/db"
    fi
    rm -f "$dir/db/db.sock"
    # No password and no network: the socket is in a directory that only this user can enter.
    launch mariadbd mariadbd --no-defaults --user="$user" --datadir="$dir/db" --skip-networking \
        --socket="$dir/db/db.sock" --pid-file="$dir/db/db.pid" --performance-schema=OFF \
        --innodb-buffer-pool-size=32M --innodb-log-file-size=16M
    ready mariadbd test -S "$dir/db/db.sock"
}

clusters() { timeout 5 sacctmgr -n -P list cluster format=cluster 2>/dev/null; }

start_slurmdbd() {
    launch slurmdbd slurmdbd -D
    ready slurmdbd clusters >/dev/null
    # slurmctld does not start while the database does not know its cluster.
    if clusters | grep -qx "${is[name]}"; then return; fi
    timeout "$timeout" sacctmgr -i add cluster "${is[name]}" >/dev/null ||
        failed slurmdbd "does not take the cluster ${is[name]}"
}

answers() { timeout 5 scontrol ping 2>/dev/null | grep -q 'is UP'; }

start_slurmctld() {
    launch slurmctld slurmctld -D -f "$conf"
    ready slurmctld answers
}

start_node() { # NODE
    local node=$1 port=$((is[port] + ${1##*-}))
    local slurmd=(slurmd -D -N "$node" -f "$dir/etc/$node/slurm.conf")
    # shellcheck disable=SC2016
    local name_it='hostname "$0" && mount --bind "$1" /etc/hosts && shift &&'
    # What crashed a moment ago may not be wholly gone.
    await "$timeout" ports_free "$port" 1 ||
        die "$node: another program has its port $port; after down, up chooses other ports"
    if [[ ${is[mode]} == flat ]]; then
        launch "$node" "${slurmd[@]}"
    elif [[ ${is[pid_namespace]} == no ]]; then
        launch "$node" unshare --uts --mount -- \
            bash -c "$name_it exec \"\$@\"" "$node" "$dir/etc/hosts" "${slurmd[@]}"
    else # bash stays as the node's first process, to bury those who have lost their parents
        launch "$node" unshare --uts --mount --pid --fork --kill-child --mount-proc -- \
            bash -c "$name_it { \"\$@\" & wait \$!; }" "$node" "$dir/etc/hosts" "${slurmd[@]}"
    fi
}

# slurmctld has not noticed yet when a node is back at once, and would wait for its jobs for ever.
report_crash() { # NODE
    timeout "$timeout" scontrol update NodeName="$1" State=DOWN Reason=crashed ||
        failed slurmctld "does not take the crash of $1"
}

registered() { # NODE SINCE: whether the slurmd that was started then has reported to slurmctld
    local line
    line=$(SLURM_TIME_FORMAT=%s timeout 5 scontrol -o show node "$1" 2>/dev/null) || return 1
    [[ $line =~ \ SlurmdStartTime=([0-9]+)\  ]] && ((BASH_REMATCH[1] >= $2)) &&
        [[ ! $line =~ \ State=[^\ ]*\* ]] # a star: does not answer
}

jobs_over() {
    local node
    [[ -n $(timeout 5 squeue -h 2>/dev/null || echo unknown) ]] || return 0
    # The jobs of a node that is gone stay in the queue: then it is enough that no process is left.
    for node in $(nodes); do
        if stopped "$node"; then
            [[ -z $(job_processes) ]]
            return
        fi
    done
    return 1
}

cancel_jobs() {
    local jobs
    if stopped slurmctld; then return; fi
    mapfile -t jobs < <(timeout 5 squeue -h -o %A 2>/dev/null | sort -u)
    ((${#jobs[@]})) || return 0
    timeout 10 scancel "${jobs[@]}" 2>/dev/null || true
    await 15 jobs_over || say "note: not every job ended when it was cancelled; killing what is left"
}

stop_daemons() {
    local signal=TERM daemon names
    # A node with processes of its own is switched off: unshare waits for its end, deaf to SIGTERM.
    if [[ ${is[pid_namespace]} == yes ]]; then signal=KILL; fi
    mapfile -t names < <(nodes)
    stop "$signal" "${names[@]}"
    for daemon in slurmctld slurmdbd mariadbd munged; do stop TERM "$daemon"; done
}
