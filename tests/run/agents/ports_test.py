#!/usr/bin/env python3
"""Where a run listens: at ports of the range from which the kernel gives free ones, and at no others (docs/jobs.md).

usage: ports_test.py SOURCE BIN FOLDER
In a network of its own, whose range is small, two agents and their ranks train through a head. Exit status 77: this
machine gives no namespaces.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SOURCE, BIN, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
FIRST, LAST = 20000, 20099
RANKS, PATIENCE = 4, 600
LISTENS = '0A'


def listening():
    """{port: inode of the socket} of this network."""
    ports = {}
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS:
                ports[int(words[1].rsplit(':', 1)[1], 16)] = words[9]
    return ports


def sockets(process):
    """The inodes of a process's sockets."""
    found = set()
    for entry in pathlib.Path(f'/proc/{process}/fd').iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith('socket:['):
            found.add(target[8:-1])
    return found


def processes_of(plan):
    """The processes of the ranks: all have the path of the plan among their words."""
    found = []
    for folder in pathlib.Path('/proc').iterdir():
        try:
            if folder.name.isdigit() and str(plan).encode() in (folder / 'cmdline').read_bytes().split(b'\0'):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def eventually(what, ready):
    until = time.monotonic() + PATIENCE
    while not (value := ready()):
        assert time.monotonic() < until, f'waited in vain for {what}'
        time.sleep(0.05)
    return value


def in_the_network():
    pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range').write_text(f'{FIRST} {LAST}')
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    run = FOLDER / 'run'
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    recipe = [SOURCE / 'recipes/nemotron_moe_vlm_tiny.yaml', 'cluster.nodes=2', 'cluster.gpus_per_node=2',
              'modules.radio_encoder.placement.ranks=2', 'modules.radio_encoder.parallel.tp=2',
              'modules.language.placement.first_rank=2', 'modules.language.placement.ranks=2',
              'modules.language.parallel.tp=2', 'budget.train_samples=1000000', 'lints.PW0407=off', '--run-dir', run]
    shown = subprocess.run([BIN / 'plan', 'launch', *recipe, '--slurm', '--dry-run', '--json'], check=True,
                           stdout=subprocess.PIPE)
    assert json.loads(shown.stdout)['ports'] == [FIRST, LAST], shown.stdout
    with open(FOLDER / 'head.log', 'w') as log:
        head = subprocess.Popen([BIN / 'plan', 'launch', *recipe, '--agents'], stdout=log, stderr=log)
        agents = [subprocess.Popen([BIN / 'plan', 'agent', run / 'job/head.json', '--node', str(node)], stdout=log,
                                   stderr=log) for node in range(2)]
    try:
        metrics = run / 'metrics.jsonl'
        eventually('steps', lambda: head.poll() is not None or metrics.exists() and metrics.read_text().count('\n') > 1)
        assert head.poll() is None, (FOLDER / 'head.log').read_text()
        ports = listening()
        assert ports and all(FIRST <= port <= LAST for port in ports), sorted(ports)
        # The head has its own port and that of the store, and each rank has at least one for its peers.
        counts = [sum(inode in owned for inode in ports.values())
                  for owned in (sockets(process) for process in [head.pid, *processes_of(run / 'plan.json')])]
        assert counts[0] == 2, counts
        assert sum(count > 0 for count in counts[1:]) == RANKS, counts
        print(f'{len(ports)} ports, {min(ports)} to {max(ports)}; of the head and of each rank: {counts}')
    finally:
        head.send_signal(signal.SIGTERM)
        for process in [head, *agents]:
            process.wait(PATIENCE)


if __name__ == '__main__':
    if len(sys.argv) == 5:
        in_the_network()
        sys.exit()
    inside = ['unshare', '--user', '--map-root-user', '--net']
    if subprocess.run([*inside, 'ip', 'link', 'set', 'lo', 'up'], check=False).returncode:
        print('no namespaces, or no iproute2')
        sys.exit(77)
    sys.exit(subprocess.run([*inside, sys.executable, *sys.argv, 'inside'], check=False).returncode)
