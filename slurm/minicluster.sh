#!/usr/bin/env bash
# A private Slurm cluster on this machine, for tests and for learning; it touches no other Slurm.
set -euo pipefail

usage() {
    cat <<'END'
usage: minicluster.sh up [--dir DIR] [--nodes N] [--cpus N] [--pid-namespace] [--accounting]
                         [--print-env]
       minicluster.sh status [--dir DIR] [--print-env]
       minicluster.sh down [--dir DIR]

up       start what is not running yet; after a node has crashed, that is the node
status   say what runs; the exit code is 0 when all of it does, 1 when a part does, 3 when nothing does
down     cancel the jobs and stop everything; DIR keeps the records until you delete it

--dir DIR        where everything of the cluster is (default: minicluster-UID in $TMPDIR or /tmp)
--nodes N        how many nodes (default 4)
--cpus N         how many CPUs each node claims to have, whatever this machine has (default 4)
--pid-namespace  each node has its processes for itself, so that it can crash, as root only:
                 kill -9 "$(cat DIR/run/NODE.pid)"
--accounting     with slurmdbd and a private MariaDB, so that sacct works
--print-env      print the export lines that a shell needs to use the cluster, and nothing else
--timeout S      how many seconds anything may take to start or to stop (default 60)

up remembers its options in DIR. Only while the cluster is down can they be changed.
END
}

say() { printf '%s\n' "$*" >&2; }
die() {
    say "minicluster: $*"
    exit 1
}
misused() {
    say "minicluster: $*; --help says more"
    exit 2
}

# What surrounds us must not reach the cluster: an allocation we are in, options for another Slurm.
inside=${SLURMD_NODENAME:-}
unset MINICLUSTER_DAEMON "${!SLURM@}" "${!SBATCH_@}" "${!SALLOC_@}" "${!SRUN_@}" "${!SQUEUE_@}" \
    "${!SINFO_@}" "${!SCANCEL_@}" "${!SACCT_@}"
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
umask 022

parts=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/minicluster
freezer=/sys/fs/cgroup/freezer
user=$(id -un)
host=$(uname -n)
host=${host%%.*}
dir=${TMPDIR:-/tmp}/minicluster-$UID
conf=''
timeout=60
print_env=no

# shellcheck source=SCRIPTDIR/minicluster/processes.sh
source "$parts/processes.sh"
# shellcheck source=SCRIPTDIR/minicluster/configuration.sh
source "$parts/configuration.sh"
# shellcheck source=SCRIPTDIR/minicluster/daemons.sh
source "$parts/daemons.sh"

enter() { # takes DIR and what it remembers, unless it is somebody's or something else's
    dir=$(realpath -m -- "$dir")
    conf=$dir/etc/slurm.conf
    [[ $dir =~ ^/[A-Za-z0-9_./+-]+$ ]] ||
        die "--dir $dir: Slurm's files cannot hold this path; use letters, digits and _ . + - only"
    [[ -e $dir ]] || return 0
    [[ -d $dir ]] || die "--dir $dir: not a directory"
    [[ -O $dir ]] || die "--dir $dir: belongs to $(stat -c %U "$dir"), and you are $user"
    if [[ -f $dir/settings ]]; then
        local key value
        while IFS='=' read -r key value; do is[$key]=$value; done <"$dir/settings"
    elif [[ -n $(find "$dir" -mindepth 1 ! -name lock ! -name settings.new -print -quit) ]]; then
        die "--dir $dir: holds something else; name a directory that is new or empty"
    fi
}

lock() { # one up or down at a time; what they start closes this descriptor
    exec 9>>"$dir/lock"
    flock -w "$timeout" 9 || die "another up or down is still at work in $dir after $timeout s"
    enter
}

exports() { printf 'export SLURM_CONF=%q\n' "$conf"; }

refuse_changes() {
    local key
    for key in "${!asked[@]}"; do
        [[ ${is[$key]} == "${asked[$key]}" ]] ||
            die "$dir runs with --${key/_/-} ${is[$key]}; that can be changed after down"
    done
}

up() {
    local name now was_up=no
    local -A started=()
    enter
    mkdir -p "$dir"
    lock
    if any_running; then
        refuse_changes
        was_up=yes
    else
        configure
    fi
    export SLURM_CONF=$conf
    now=$EPOCHSECONDS
    for name in $(daemons); do
        if running "$name"; then continue; fi
        started[$name]=$now
        if is_node "$name" && [[ $was_up-${is[pid_namespace]} == yes-yes ]]; then report_crash "$name"; fi
        start "$name"
    done
    # A new slurmctld has to find the nodes that run, too.
    for name in $(nodes); do
        if [[ -n ${started[$name]:-}${started[slurmctld]:-} ]]; then
            ready "$name" registered "$name" "${started[$name]:-0}"
        fi
    done
    if [[ $print_env == yes ]]; then exports; else status; fi
}

status() {
    local name all=0 some=0
    enter
    if ! [[ -f $dir/settings ]] || ! any_running; then
        say "nothing runs in $dir"
        return 3
    fi
    for name in $(daemons); do
        all=$((all + 1))
        if running "$name"; then some=$((some + 1)); fi
        [[ $print_env == yes ]] ||
            printf '%-12s %s\n' "$name" "${pid:+runs as process }${pid:-is not running}"
    done
    if [[ $print_env == no ]]; then
        if running slurmctld; then SLURM_CONF=$conf timeout 5 sinfo || say "slurmctld does not answer"; fi
        echo "To use it:"
    fi
    exports
    ((some == all))
}

down() {
    enter
    if [[ -f $dir/settings ]]; then
        [[ $inside != "${is[name]}"-* ]] || die "a job of this cluster cannot stop it"
        lock
        export SLURM_CONF=$conf
        cancel_jobs
        stop_daemons
    else # DIR may have been deleted too early
        is[name]=$(name_in_use)
    fi
    await "$timeout" swept || die "these processes do not end: $(leftovers | tr '\n' ' ')"
    await 10 cgroups_removed || say "note: could not remove the cgroups $freezer/slurm_${is[name]}-*"
}

action=${1:-}
case $action in
    up | status | down) shift ;;
    -h | --help) usage && exit ;;
    *) misused "say up, status or down${action:+, not $action}" ;;
esac
while (($#)); do
    if [[ $1 == --*=* ]]; then set -- "${1%%=*}" "${1#*=}" "${@:2}"; fi
    case $1 in
        --dir | --nodes | --cpus | --timeout)
            [[ -n ${2:-} ]] || misused "$1 needs a value"
            [[ $1 == --dir || $2 =~ ^[1-9][0-9]{0,2}$ ]] || misused "$1 $2: not a number from 1 to 999"
            case $1 in
                --dir) dir=$2 ;;
                --timeout) timeout=$2 ;;
                *) asked[${1#--}]=$2 ;;
            esac
            shift
            ;;
        --pid-namespace) asked[pid_namespace]=yes ;;
        --accounting) asked[accounting]=yes ;;
        --print-env) print_env=yes ;;
        -h | --help) usage && exit ;;
        *) misused "unknown option $1" ;;
    esac
    shift
done
[[ $action == up || ${#asked[@]} == 0 ]] || misused "only up takes the options of a cluster"
[[ $action != down || $print_env == no ]] || misused "--print-env: not an option of down"
((${asked[nodes]:-1} <= 100)) || misused "--nodes ${asked[nodes]}: at most 100"
"$action"
