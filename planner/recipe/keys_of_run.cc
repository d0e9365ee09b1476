// The keys of a run: checkpoints, the log, levels of lints, and how ranks are started and watched.
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

constexpr NumberRange kRestarts{0, static_cast<double>(kMostRestarts)};
constexpr NumberRange kCores{1, static_cast<double>(kMostCores)};

constexpr KeySpec kRunKeys[] = {
    {"checkpoint", "", Section<&Recipe::checkpoint>, kOptional, "", kAny, "", "saving and resuming"},
    {"checkpoint.every_steps", "", To<&CheckpointRecipe::every_steps>, kOptional, "", kSteps, "",
     "steps between checkpoints; one more is written at the end. Without it a run keeps nothing"},
    {"checkpoint.keep_last", "", To<&CheckpointRecipe::keep_last>, kOptional, "", kSteps, "",
     "how many of the newest checkpoints stay; without it all stay"},
    {"checkpoint.keep_every_steps", "", To<&CheckpointRecipe::keep_every_steps>, kOptional, "", kSteps, "",
     "checkpoints of steps that this divides stay, too"},
    {"checkpoint.keep_best", "", To<&CheckpointRecipe::keep_best>, kOptional, "", kAny, "",
     "an evaluation set: the checkpoint whose evaluation had its least loss stays, too"},

    {"log", "", Section<&Recipe::log>, kOptional, "", kAny, "", "what is written while training"},
    {"log.every_steps", "", To<&LogRecipe::every_steps>, kOptional, "1", kSteps, "",
     "steps between two printed lines; metrics.jsonl has every step"},

    {"lints", "", kLintLevels, kOptional, "", kAny, "error|warn|off",
     "levels of lints by number; `plan explain` lists the lints"},

    {"launch", "", Section<&Recipe::launch>, kOptional, "", kAny, "", "how ranks are started and watched"},
    {"launch.interface", "", To<&LaunchRecipe::interface>, kOptional, "", kAny, "",
     "network interface of rendezvous, Gloo and NCCL, such as ib0; default: the one that reaches the others"},
    {"launch.restarts", "", To<&LaunchRecipe::restarts>, kOptional, "0", kRestarts, "",
     "how often a run that failed is started again from its newest checkpoint"},
    {"launch.fallbacks", "", To<&LaunchRecipe::fallbacks>, kOptional, "", kAny, "",
     "recipes for fewer nodes, absolute or relative to this file; a restart takes the first that fits"},
    {"launch.deadline", "", Section<&LaunchRecipe::deadline>, kOptional, "", kAny, "",
     "when an instruction counts as hung: after the largest of these"},
    {"launch.deadline.floor", "", To<&DeadlineRecipe::floor>, kOptional, "600.0", kDeadline, "",
     "seconds that every instruction is given"},
    {"launch.deadline.first_step", "", To<&DeadlineRecipe::first_step>, kOptional, "1800.0", kDeadline, "",
     "the floor until the first step is done"},
    {"launch.deadline.factor", "", To<&DeadlineRecipe::factor>, kOptional, "20.0", kMultiple, "",
     "multiple of the estimated time: of the instruction, or of a step where it waits for other ranks"},
    {"launch.env", "", To<&LaunchRecipe::env>, kOptional, "", kAny, "",
     "environment variables of ranks: NAME=VALUE, or NAME for the value of the shell that launches"},
    {"launch.setup", "", To<&LaunchRecipe::setup>, kOptional, "", kAny, "",
     "lines of bash that each rank runs first, such as module load; \"$@\" in them is the rank's command"},
    {"launch.slurm", "", Section<&LaunchRecipe::slurm>, kOptional, "", kAny, "", "options for sbatch"},
    {"launch.slurm.partition", "", To<&SlurmRecipe::partition>, kOptional, "", kAny, "", "Slurm partition"},
    {"launch.slurm.account", "", To<&SlurmRecipe::account>, kOptional, "", kAny, "", "Slurm account"},
    {"launch.slurm.qos", "", To<&SlurmRecipe::qos>, kOptional, "", kAny, "", "Slurm quality of service"},
    {"launch.slurm.constraint", "", To<&SlurmRecipe::constraint>, kOptional, "", kAny, "", "features of the nodes"},
    {"launch.slurm.time", "", To<&SlurmRecipe::time>, kOptional, "", kAny, "",
     "wall time of one job, in quotes: MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS"},
    {"launch.slurm.reservation", "", To<&SlurmRecipe::reservation>, kOptional, "", kAny, "", "Slurm reservation"},
    {"launch.slurm.gres", "", To<&SlurmRecipe::gres>, kOptional, "", kAny, "",
     "generic resources of each node, as gpu:h100:8; default: gpus_per_node GPUs; none: the cluster does not count "
     "GPUs"},
    {"launch.slurm.cpus_per_task", "", To<&SlurmRecipe::cpus_per_task>, kOptional, "", kCores, "",
     "cores of each node for its ranks; default: whole nodes with GPUs, and a core for each rank on CPUs"},
    {"launch.slurm.container", "", To<&SlurmRecipe::container>, kOptional, "", kAny, "",
     "container image in which nodes run their ranks (pyxis)"},
    {"launch.slurm.mounts", "", To<&SlurmRecipe::mounts>, kOptional, "", kAny, "",
     "folders that the container sees, as FROM:TO[:FLAGS]"},
    {"launch.slurm.options", "", To<&SlurmRecipe::options>, kOptional, "", kAny, "",
     "further options of sbatch in full, as --exclude=n17"},
};

}  // namespace

std::span<const KeySpec> KeysOfRun() { return kRunKeys; }

}  // namespace planwright
