# shellcheck shell=bash
# Sourced by minicluster.sh: starting, watching and stopping processes.
#
# A daemon is started with its mark, MINICLUSTER_DAEMON=DIR:NAME, in its environment. Only a process
# with this mark counts as ours, whatever a pid file says: its pid may have gone to somebody else.

running() { # NAME; leaves its pid in $pid
    pid=''
    # Read once: the file may go away at any time.
    read -r pid 2>/dev/null <"$dir/run/$1.pid" || true
    if [[ $pid =~ ^[0-9]+$ ]] && grep -qszxF "MINICLUSTER_DAEMON=$dir:$1" "/proc/$pid/environ"; then
        return
    fi
    pid=''
    return 1
}

stopped() { ! running "$1"; }

await() { # SECONDS COMMAND...: until the command succeeds
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

failed() { # NAME WHAT
    say "minicluster: $1 $2; the end of $dir/log/$1.err:"
    tail -n 15 "$dir/log/$1.err" >&2 || true
    exit 1
}

# In a session of its own, so that what happens to our terminal does not matter to it. With & bash
# has interrupts ignored in what it starts, and jobs would inherit that: env undoes it.
launch() { # NAME COMMAND...
    local name=$1
    rm -f "$dir/run/$name.pid"
    # shellcheck disable=SC2016
    (cd / && exec env --default-signal=INT,QUIT MINICLUSTER_DAEMON="$dir:$name" SLURM_CONF="$conf" \
        MYSQL_UNIX_PORT="$dir/db/db.sock" setsid bash -c 'echo $$ >"$0" && exec "$@"' \
        "$dir/run/$name.pid" "${@:2}") </dev/null >"$dir/log/$name.err" 2>&1 9>&- &
    await "$timeout" test -s "$dir/run/$name.pid" || failed "$name" "was not started within $timeout s"
}

ready() { # NAME COMMAND...: waits until the command succeeds; the daemon may die before
    local name=$1 end=$((SECONDS + timeout))
    until "${@:2}"; do
        running "$name" || failed "$name" "ended while it started"
        ((SECONDS < end)) || failed "$name" "is not ready after $timeout s"
        sleep 0.05
    done
}

stop() { # SIGNAL NAME...: all at once
    local signal=$1 name
    for name in "${@:2}"; do
        if running "$name"; then kill "-$signal" "$pid" 2>/dev/null || true; fi
    done
    for name in "${@:2}"; do
        if ! await "$timeout" stopped "$name"; then
            say "note: $name does not end on SIG$signal after $timeout s; killing it"
            if running "$name"; then kill -KILL "$pid" 2>/dev/null || true; fi
            await 10 stopped "$name" || die "$name (process $pid) cannot be killed"
        fi
        rm -f "$dir/run/$name.pid"
    done
}

marked() { # TEXT: the processes that have it in their environment
    grep -lszF "$1" /proc/[0-9]*/environ | tr -dc '0-9\n' || true
}

job_processes() { marked "SLURMD_NODENAME=${is[name]}-"; }

daemon_processes() { # and slurmstepd's, which inherit the mark
    local found there
    for found in $(marked "MINICLUSTER_DAEMON=$dir:"); do
        there=/proc/$found/root$dir
        # In a container the same path is another directory.
        if [[ $there -ef $dir || (! -e $there && ! -e $dir) ]]; then echo "$found"; fi
    done
}

# All that is left of the cluster, found without pid files.
leftovers() {
    daemon_processes
    job_processes
    find "$freezer/slurm_${is[name]}-"[0-9]* -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

swept() {
    local left
    mapfile -t left < <(leftovers)
    ((${#left[@]})) || return 0
    kill -KILL "${left[@]}" 2>/dev/null || true
    return 1
}

# Slurm leaves its empty directories behind.
cgroups_removed() {
    local left
    left=$(find "$freezer/slurm_${is[name]}-"[0-9]* -depth -type d ! -exec rmdir {} \; -print 2>/dev/null) || true
    [[ -z $left ]]
}

name_in_use() { # of the cluster whose daemons run in DIR; nothing if there is none
    local found
    for found in $(daemon_processes); do
        tr '\0' '\n' 2>/dev/null <"/proc/$found/environ" || true
    done | sed -nE "s/^MINICLUSTER_DAEMON=.*:(m[0-9a-f]{5})-[0-9]+\$/\1/p" | sort -u | tail -n 1
}
