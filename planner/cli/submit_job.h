// `--slurm`: a job is written and submitted, or only shown.
#pragma once

#include "planner/run/slurm/job_files.h"

namespace planwright {

// What a job needs beside its plans and options: this program, its folder and its environment.
JobFiles JobHere();

// Writes the job and submits it. With `dry_run` it prints both and does nothing. `signal_seconds`: how long before the
// end of its time the job is told. Returns the exit status.
int SubmitJob(const JobFiles& job, int signal_seconds, bool dry_run, bool as_json);

}  // namespace planwright
