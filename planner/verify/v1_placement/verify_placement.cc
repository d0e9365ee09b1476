// V1: every rank is in exactly one role, and in the grids of exactly that role's modules. Grids cover the world; two
// grids are disjoint or equal; the dense and the expert view of a module have the same ranks; a role runs one
// pipeline stage of each of its modules.
//
// Not here: which ranks communicate (V2, V3), which layers a stage holds (V5, V7), and that the roles of one stage run
// the same program (V11, verify_siblings.cc).

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

// The number of ranks of a grid; 0 if a world may not have so many. Grid::ranks() could overflow before this check.
int64_t RanksOf(const Grid& grid) {
  int64_t ranks = 1;
  for (Axis axis : kDenseAxes) ranks = std::min(ranks * grid.size(axis), kMostRanks + 1);
  return ranks > kMostRanks ? 0 : ranks;
}

int64_t End(const Grid& grid) { return grid.first_rank + int64_t{grid.ranks()}; }

bool SameSpan(const Grid& a, const Grid& b) { return a.first_rank == b.first_rank && a.ranks() == b.ranks(); }

bool Overlap(const Grid& a, const Grid& b) { return a.first_rank < End(b) && b.first_rank < End(a); }

// What is wrong with one module's grid, or "".
std::string GridProblem(const Plan& plan, const Module& module) {
  const Grid& grid = module.grid;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kExpertTp, Axis::kEp, Axis::kExpertDp}) {
    if (grid.size(axis) >= 1) continue;
    return absl::StrCat("module ", module.name, " has axis ", std::string(AxisName(axis)), " of size ",
                        grid.size(axis));
  }
  const int64_t ranks = RanksOf(grid);
  if (ranks == 0) return absl::StrCat("module ", module.name, " has more than ", kMostRanks, " ranks");
  int64_t expert = 1;
  for (Axis axis : kExpertAxes) expert = std::min(expert * grid.size(axis), kMostRanks + 1);
  if (expert != ranks)
    return absl::StrCat("the views of module ", module.name, " factor ", ranks, " and ", expert, " ranks");
  if (grid.first_rank < 0 || grid.first_rank + ranks > plan.world_size) {
    return absl::StrCat("module ", module.name, " does not fit the world of ", plan.world_size, " ranks");
  }
  const auto same_name = [&](const Module& other) { return &other < &module && other.name == module.name; };
  if (std::any_of(plan.modules.begin(), plan.modules.end(), same_name))
    return absl::StrCat("two modules are named ", module.name);
  return "";
}

void CheckGrids(const Plan& plan, std::vector<Violation>& violations) {
  std::vector<const Module*> by_rank;
  for (const Module& module : plan.modules) {
    const auto fail = [&](std::string message) { violations.push_back({"V1", std::move(message), module.origin}); };
    if (std::string problem = GridProblem(plan, module); !problem.empty()) {
      fail(std::move(problem));
      continue;
    }
    for (const Module* other : by_rank) {
      if (Overlap(module.grid, other->grid) && !SameSpan(module.grid, other->grid)) {
        fail(absl::StrCat("modules ", other->name, " and ", module.name, " overlap without being equal"));
      }
    }
    by_rank.push_back(&module);
  }
  if (!violations.empty()) return;
  std::sort(by_rank.begin(), by_rank.end(),
            [](const Module* a, const Module* b) { return a->grid.first_rank < b->grid.first_rank; });
  int64_t covered = 0;
  // Grids ascend now, so a gap shows where the next grid starts behind all ranks so far.
  const auto check_gap = [&](int64_t next) {
    if (next > covered) violations.push_back({"V1", absl::StrCat("rank ", covered, " is in no module"), -1});
  };
  for (const Module* module : by_rank) {
    check_gap(module->grid.first_rank);
    covered = std::max(covered, End(module->grid));
  }
  check_gap(plan.world_size);
}

// The last rank of the range; -1 if the range has no ranks or leaves the world.
int64_t LastRank(const Plan& plan, const RankRange& range) {
  if (range.count < 1 || range.stride < 1 || range.first < 0) return -1;
  const int64_t last = range.first + (range.count - int64_t{1}) * range.stride;
  return last < plan.world_size ? last : -1;
}

// What is wrong with the pipeline stages of a range, or "". A role runs every module whose grid contains its ranks, and
// one stage of each. pp varies slowest in a grid, so the two ends of a range are enough.
std::string StageProblem(const Plan& plan, const Role& role, const RankRange& range, int last) {
  for (const Module& module : plan.modules) {
    if (!module.grid.contains(range.first)) continue;
    if (std::find(role.modules.begin(), role.modules.end(), module.name) == role.modules.end()) {
      return absl::StrCat("role ", role.name, " is on ranks of module ", module.name, " but does not run it");
    }
    const int stage = CoordinateOf(module.grid, role.ranks.front().first, Axis::kPp);
    if (CoordinateOf(module.grid, range.first, Axis::kPp) == stage &&
        CoordinateOf(module.grid, last, Axis::kPp) == stage)
      continue;
    return absl::StrCat("role ", role.name, " has ranks of several pipeline stages of module ", module.name);
  }
  return "";
}

// Each rank must be in one role. This keeps one number for each rank and reports at most one problem for each role: a
// damaged plan may be wrong at every one of a million ranks.
void CheckRoles(const Plan& plan, std::vector<Violation>& violations) {
  constexpr int kNobody = -1;
  std::vector<int> owner(plan.world_size, kNobody);
  const auto check = [&](size_t index) -> std::string {
    const Role& role = plan.roles[index];
    if (role.ranks.empty() || role.modules.empty())
      return absl::StrCat("role ", role.name, " has no rank or no module");
    for (const RankRange& range : role.ranks) {
      const int64_t last = LastRank(plan, range);
      if (last < 0) return absl::StrCat("role ", role.name, " has ranks from ", range.first, " outside the world");
      for (const std::string& name : role.modules) {
        const Module* module = plan.FindModule(name);
        if (module && module->grid.contains(range.first) && module->grid.contains(static_cast<int>(last))) continue;
        const int64_t outside = module && module->grid.contains(range.first) ? last : range.first;
        return absl::StrCat("role ", role.name, " runs module ", name, " on rank ", outside,
                            ", which is not in its grid");
      }
      if (std::string problem = StageProblem(plan, role, range, static_cast<int>(last)); !problem.empty())
        return problem;
      for (int64_t rank = range.first; rank <= last; rank += range.stride) {
        if (owner[rank] != kNobody)
          return absl::StrCat("rank ", rank, " is in roles ", plan.roles[owner[rank]].name, " and ", role.name);
        owner[rank] = static_cast<int>(index);
      }
    }
    return "";
  };
  for (size_t i = 0; i < plan.roles.size(); ++i) {
    if (std::string problem = check(i); !problem.empty())
      violations.push_back({"V1", std::move(problem), plan.roles[i].origin});
  }
  if (!violations.empty()) return;
  const auto unowned = std::find(owner.begin(), owner.end(), kNobody);
  if (unowned == owner.end()) return;
  const int rank = static_cast<int>(unowned - owner.begin());
  const auto module = std::find_if(plan.modules.begin(), plan.modules.end(),
                                   [&](const Module& candidate) { return candidate.grid.contains(rank); });
  violations.push_back(
      {"V1", absl::StrCat("rank ", rank, " is in no role"), module == plan.modules.end() ? -1 : module->origin});
}

}  // namespace

std::vector<Violation> VerifyPlacement(const Plan& plan) {
  std::vector<Violation> violations;
  if (plan.world_size < 1 || plan.world_size > kMostRanks) {
    violations.push_back({"V1", absl::StrCat("the world has ", plan.world_size, " ranks, not 1 to ", kMostRanks), -1});
    return violations;
  }
  CheckGrids(plan, violations);
  if (violations.empty()) CheckRoles(plan, violations);
  return violations;
}

}  // namespace planwright
