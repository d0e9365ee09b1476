#include "planner/base/files/exit_status.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planwright {
namespace {

constexpr bool kRestart = true, kNoRestart = false, kFollows = true, kFirst = false;

constexpr ExitStatusRow kRows[] = {
#define EXIT_STATUS(name, ...) {__VA_ARGS__},
#include "planner/base/files/exit_status.def"
#undef EXIT_STATUS
};

constexpr char kFailures[] = R"(# How a run can fail

This page is made from the table of exit statuses: `plan explain --failures` prints it.

A run that fails ends all its ranks, and `plan launch` ends with one of these statuses. `outcome.json` in the run
directory has it as `exit_code`, with the `cause` in words, `rank`, `host`, `instruction`, `recipe_line`, the rank's
own `message`, and in `others` what the other ranks were in, and whether they waited there. `restart` says whether the
same run, started again, may well succeed: a run is started again by itself only for these causes.

A run that is done has `exit_code` 0, and `plan launch` ends with 0 too where its stdout is closed or full: a warning
says so, and `logs/rank0000.out` has the lines. With `--json`, what cannot be printed is the result, and it ends with 2.
A reader who leaves while the run goes on (`| head -1`) sends SIGPIPE, which ends it as Ctrl-C does: with a checkpoint,
where it saves any. Write long runs into a file (`> log 2>&1`).

)";

constexpr char kCauses[] = R"(
Statuses 10, 21 and 22 are often a consequence: a rank that is killed is a lost connection to all others. They are the
cause only if no rank ended in another way.

## What is told apart, and how

- **A killed rank** (10) has been ended by a signal. If it was SIGKILL, and the cgroup of the program that started the
  rank counts more processes that the kernel killed for memory than before (`oom_kill` of `memory.events`, or of
  `memory.oom_control` in version 1), the cause is **host memory** (19). Without a readable cgroup the count of the
  machine in `/proc/vmstat` is taken. An allocation that is refused (`std::bad_alloc`) is the same cause.
- **GPU memory** (20) is an allocation that LibTorch's allocator or CUDA refuses, also of host memory that is to be
  pinned. Every other error of CUDA is a **failed device** (16): what a driver reports as an Xid reaches a rank as such
  an error. Its number is in the kernel's log of the host, which a rank usually may not read.
- **NCCL's network** (21) is its remote or system error, with NCCL's last message in words.
- **A stopped rank** (24) is seen by the launcher, as its parent. A rank that **hangs** (11) is found by its deadline.
- **Non-finite numbers** (12) are 10 steps in a row whose gradient norm is not finite, also if they are of several
  lives. A single such step is skipped.
- **A diverged loss** (25) is more than `divergence.factor` times the smallest of the `divergence.window` steps before
  ([divergence](training/evaluation.md#divergence)). A resume from the same checkpoint, with the same samples, ends in
  the same way.
- **A slow rank** is no failure and ends nothing: see below.

## Deadlines

An instruction that takes longer than its deadline hangs, and the run ends.

| instruction | deadline |
|---|---|
| works by itself | the floor, or `factor` times its own estimate if that is longer |
| waits for other ranks | the floor, or `factor` times the estimate of a whole step if that is longer |
| saves, loads, or reads samples (classes storage and data) | the floor, counted from when bytes moved last |

`launch.deadline` of a recipe sets `floor` (600 s), `first_step` (1800 s) and `factor` (20). Until a rank has done the
first step after its start, `first_step` takes the place of the floor if it is longer: libraries load, kernels are
chosen, and files are read for the first time. The estimates are [predicted times](step_time.md). On a device of unknown
speed (`cluster.gpu: none` without a [profile](measure.md)) there are none, and the floor counts. `plan show RECIPE
schedule` prints the deadlines.

The time of an instruction counts while it is the first unfinished one: of a communication from when it began, of work
on a GPU from when it was launched. Other work on the host has no deadline, as its peers have theirs. Nobody knows how
fast a disk is, so what saves, loads or reads samples makes progress as long as the kernel counts a MiB more that the
rank has read or written (`/proc/self/io`). Where a rank has saved or loaded its own part and waits for that of another,
no time counts: the other one is limited. Time during which the rank itself is stopped does not count.

A rank in an [evaluation](training/evaluation.md) is in instructions as in a step, and each of them has its deadline. At
its end ranks wait for each other: as many times as long as they wait in a step, as it has rounds.

`PLANWRIGHT_TIMEOUT_SECONDS` replaces all deadlines of a run, for tests and emergencies. It is also the longest time
that ranks wait for each other when they meet (600 s if it is not set). Set it where you launch: ranks get the
launcher's, on all nodes, and never that of an agent's shell.

## Slow ranks

All others wait for the slowest rank in every step. Each rank samples 50 times a second whether it is in an instruction
that waits for others, and records how long it computed in each step. At the end of a run, however it ends, `plan
launch` compares the last 20 steps, and names in a line and in `slow_ranks` of `outcome.json` the ranks that computed
more than 1.5 times as long as the median of their role, in the first as in the second half of these steps, and a second
longer in all. Smaller differences, and roles of one or two ranks, are left alone.
)";

}  // namespace

std::span<const ExitStatusRow> ExitStatuses() { return kRows; }

const ExitStatusRow* FindExitStatus(int exit_status) {
  const auto found = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const ExitStatusRow& row) { return row.number == exit_status; });
  return found == std::end(kRows) ? nullptr : found;
}

bool WorthRetrying(int exit_status) {
  if (const ExitStatusRow* row = FindExitStatus(exit_status)) return row->restart;
  return exit_status > 0 && exit_status < 126;
}

bool MayFollowFromAnother(int exit_status) {
  const ExitStatusRow* row = FindExitStatus(exit_status);
  return row != nullptr && row->follows;
}

std::string ExitStatusHelp() {
  std::string text = "exit status:\n";
  for (const ExitStatusRow& row : kRows) absl::StrAppendFormat(&text, "  %-6d%s\n", row.number, row.meaning);
  absl::StrAppendFormat(&text, "  %-6s%s\n", "128+N", "interrupted by signal N");
  return text;
}

std::string FailuresPage() {
  std::string page = kFailures;
  absl::StrAppend(&page, "| status | meaning | what is named | restart | what to do |\n|---|---|---|---|---|\n");
  for (const ExitStatusRow& row : kRows) {
    if (row.number < kExitUsage) continue;  // no run has failed
    absl::StrAppend(&page, "| ", row.number, " | ", row.meaning, " | ", row.named, " | ", row.restart ? "yes" : "no",
                    " | ", row.mend, " |\n");
  }
  return absl::StrCat(page, "| 128+N | interrupted by signal N, without a checkpoint | the signal | no | |\n", kCauses);
}

}  // namespace planwright
