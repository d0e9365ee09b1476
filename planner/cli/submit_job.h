// `--slurm`: a job is written and submitted, or only shown.
#pragma once

#include "planner/run/slurm/job_files.h"

namespace planwright {

// What a job needs beside its plans and options: this program, its folder and its environment.
JobFiles JobHere();

// Completes the job by what its plans need and name, and submits it; or says all for which it cannot be, and leaves
// nothing behind. With `dry_run` it prints all (show_job.h) and does nothing. `signal_seconds`: how long before the end
// of its time the job is told. Returns the exit status.
int SubmitJob(JobFiles job, int signal_seconds, bool dry_run, bool as_json);

}  // namespace planwright
