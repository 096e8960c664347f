# shellcheck shell=bash
# Sourced by minicluster.sh: what the cluster consists of, what this machine allows, and the files
# that follow from both.

declare -A asked=() # the options of this call
# What DIR remembers: the options, and what was found or chosen when the cluster last started.
declare -A is=(
    [name]='' [nodes]=4 [cpus]=4 [pid_namespace]=no [accounting]=no
    [mode]='' [proctrack]='' [port]=''
)

nodes() { seq -f "${is[name]}-%.0f" "${is[nodes]}"; }
is_node() { [[ $1 == "${is[name]}"-* ]]; }

daemons() { # in the order in which they start
    echo munged
    [[ ${is[accounting]} == no ]] || printf '%s\n' mariadbd slurmdbd
    echo slurmctld
    nodes
}

any_running() {
    local name
    for name in $(daemons); do
        if running "$name"; then return; fi
    done
    return 1
}

configure() { # nothing of the cluster runs: all may be decided anew
    local key
    for key in "${!asked[@]}"; do is[$key]=${asked[$key]}; done
    # Unlike those of other clusters on the machine: the cgroups of a node are named after it.
    [[ -n ${is[name]} ]] || is[name]=$(printf 'm%05x' $((RANDOM << 5 ^ RANDOM)))
    need_programs
    need_short_path
    # Its daemons were killed, or their pid files deleted: what they left would be in the way.
    await "$timeout" swept || die "these processes do not end: $(leftovers | tr '\n' ' ')"
    find_mode
    find_proctrack
    find_ports
    remember
    write_files
}

need_programs() {
    local need missing=() packages=() needs=(
        munged:munge slurmctld:slurmctld slurmd:slurmd scontrol:slurm-client
        flock:util-linux setsid:util-linux unshare:util-linux find:findutils
    )
    if [[ ${is[accounting]} == yes ]]; then
        needs+=(
            slurmdbd:slurmdbd mariadbd:mariadb-server-core mariadb-install-db:mariadb-server-core
            my_print_defaults:mariadb-client-core # for mariadb-install-db
        )
    fi
    for need in "${needs[@]}"; do
        if command -v "${need%:*}" >/dev/null; then continue; fi
        missing+=("${need%:*}")
        [[ " ${packages[*]} " == *" ${need#*:} "* ]] || packages+=("${need#*:}")
    done
    # Not on PATH, as it is a plugin. Elsewhere than on Debian slurmdbd's log tells that it misses it.
    if [[ ${is[accounting]} == yes ]] && compgen -G '/usr/lib/*/slurm-wlm' >/dev/null &&
        ! compgen -G '/usr/lib/*/slurm-wlm/accounting_storage_mysql.so' >/dev/null; then
        missing+=(accounting_storage_mysql.so)
        packages+=(slurm-wlm-mysql-plugin)
    fi
    ((${#missing[@]} == 0)) || die "missing: ${missing[*]}; as root on Debian or Ubuntu:
apt-get install -y --no-install-recommends ${packages[*]}"
}

need_short_path() { # for the longest name of a socket, slurmstepd's; ids have up to ten digits
    local node=${is[name]}-${is[nodes]}
    local longest=$dir/spool/$node/${node}_4294967295.4294967295
    ((${#longest} <= 107)) ||
        die "--dir $dir: too long by $((${#longest} - 107)) characters for the Unix sockets in it"
}

find_mode() {
    local kinds=(--uts --mount) why
    [[ ${is[pid_namespace]} == no ]] || kinds+=(--pid --fork --mount-proc)
    is[mode]=namespaces
    if ((UID != 0)); then
        why="only root can make namespaces"
    elif why=$(unshare "${kinds[@]}" -- mount --bind /dev/null /etc/hosts 2>&1); then
        return
    else
        why="no namespaces can be made here (${why%%$'\n'*})"
    fi
    [[ ${is[pid_namespace]} == no ]] || die "--pid-namespace: $why"
    is[mode]=flat
    say "note: $why; all nodes have the host name $host"
}

find_proctrack() {
    local probe=$freezer/slurm_${is[name]}-probe
    is[proctrack]=cgroup
    if ((UID == 0)) && mkdir "$probe" 2>/dev/null && rmdir "$probe"; then return; fi
    is[proctrack]=linuxproc
    say "note: no cgroup v1 freezer can be written to; processes are tracked by their parents" \
        "(linuxproc), and one that detaches itself from its job may outlive it until down"
}

ports_free() { # FIRST COUNT; 06 is a closed connection that lingers, no hindrance
    local port used
    used=$(awk '$4 != "06" { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null) || true
    for ((port = $1; port < $1 + $2; port++)); do
        if grep -qx "$(printf '%04X' "$port")" <<<"$used"; then return 1; fi
    done
}

find_ports() { # for slurmctld, each node and slurmdbd, in a row; last time's if they are free
    local tries count=$((is[nodes] + 2))
    for ((tries = 0; tries < 100; tries++)); do
        if [[ -n ${is[port]} ]] && ports_free "${is[port]}" "$count"; then return; fi
        is[port]=$((20000 + RANDOM % 12000))
    done
    die "found no $count free ports in a row"
}

remember() { # first of all files: a directory with nothing else in it is known to be ours
    local key
    for key in "${!is[@]}"; do printf '%s=%s\n' "$key" "${is[$key]}"; done >"$dir/settings.new"
    mv "$dir/settings.new" "$dir/settings"
}

render() { # TEMPLATE: with its @KEYS@ filled in
    local text key dbd_port=$((is[port] + is[nodes] + 1))
    local -A values=(
        [NAME]=${is[name]} [HOST]=$host [USER]=$user [DIR]=$dir [PROCTRACK]=${is[proctrack]}
        [NODES]="[1-${is[nodes]}]" [SHORT]="[1-$((is[nodes] < 2 ? is[nodes] : 2))]" [CPUS]=${is[cpus]}
        [PORT]=${is[port]} [NODE_PORTS]="[$((is[port] + 1))-$((is[port] + is[nodes]))]"
        [DBD_PORT]=$dbd_port [NODE_HOSTNAME]="${is[name]}-[1-${is[nodes]}]" [ACCOUNTING]=''
    )
    if [[ ${is[mode]} == flat ]]; then values[NODE_HOSTNAME]=$host; fi
    if [[ ${is[accounting]} == yes ]]; then
        # Slurm wants the socket of a munged of our own in AccountingStoragePass.
        printf -v 'values[ACCOUNTING]' '%s\n' "AccountingStorageType=accounting_storage/slurmdbd" \
            AccountingStorageHost=localhost "AccountingStoragePort=$dbd_port" \
            "AccountingStoragePass=$dir/munge/munge.sock"
    fi
    text=$(<"$parts/$1")
    for key in "${!values[@]}"; do text=${text//"@$key@"/"${values[$key]}"}; done
    printf '%s\n' "$text"
}

write_files() {
    local node
    mkdir -p "$dir"/{etc,log,munge,run,spool,state}
    render slurm.conf.in >"$conf"
    # The plugin that starts wherever this script runs; without proctrack/cgroup nothing uses it.
    echo "CgroupPlugin=cgroup/v1" >"$dir/etc/cgroup.conf"
    if [[ ${is[accounting]} == yes ]]; then
        (umask 077 && render slurmdbd.conf.in >"$dir/etc/slurmdbd.conf")
    fi
    { cat /etc/hosts 2>/dev/null || echo 127.0.0.1 localhost; } >"$dir/etc/hosts"
    for node in $(nodes); do
        echo "127.0.0.1 $node" >>"$dir/etc/hosts"
        mkdir -p "$dir/spool/$node" "$dir/etc/$node" "$dir/tmp/$node"
        chmod 1777 "$dir/tmp/$node"
        cp "$conf" "$dir/etc/cgroup.conf" "$dir/etc/$node/"
        # PMIx makes a directory for each step; in the /tmp of the machine all nodes would share it.
        echo "PMIxCliTmpDirBase=$dir/tmp/$node" >"$dir/etc/$node/mpi.conf"
    done
}
