// What a job asks for against what the cluster has, before sbatch is asked: it would refuse less (a job that may never
// start waits for ever), or not say why.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/run/slurm/slurm_commands.h"

namespace planwright {

// A text for each: a partition that is not there, a time that none of the asked ones allows, more cores of a node than
// the largest one has. No partitions: nothing is known.
std::vector<std::string> ClusterProblems(const Plan& plan, const std::vector<Partition>& partitions);

}  // namespace planwright
