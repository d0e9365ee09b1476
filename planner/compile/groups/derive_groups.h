// The process groups of every module, in the order in which all ranks create them. Table of groups:
// docs/layouts/grids.md#groups.
#pragma once

#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// The world, then the groups of every module in recipe order ("language.tp", ...), then one group for each bridge, of
// the ranks that it joins. Every module has all groups of the table, those of one rank and those that this plan does
// not use included. Group::streams: the streams on which `blocks` or `roles` communicate over the group; none where it
// is not used.
std::vector<Group> DeriveGroups(const std::vector<Module>& modules, const std::vector<Bridge>& bridges,
                                const std::vector<Block>& blocks, const std::vector<Role>& roles);

}  // namespace planwright
