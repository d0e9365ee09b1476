#include "planner/compile/topology/derive_grids.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

bool InRange(const Located<int64_t>& value, int64_t least, const ModuleRecipe& module, const char* what,
             Diagnostics& diagnostics) {
  if (!AllKnown(value)) return false;
  if (*value >= least && *value <= kMostRanks) return true;
  diagnostics.Error(DiagnosticKind::kOutOfRange, value.where.known() ? value.where : module.placement,
                    absl::StrCat(what, " of module ", *module.name, " is ", *value),
                    absl::StrCat("use a number between ", least, " and ", kMostRanks));
  return false;
}

// Bounds every size before any are multiplied: the products below cannot overflow, and none of them is 0. Which of the
// two views has all of its sizes, and whether all sizes are known.
struct Views {
  bool dense = false, expert = false, all = false;
};

Views SizesInRange(const ModuleRecipe& m, Diagnostics& diagnostics) {
  const bool first = InRange(m.first_rank, 0, m, "first_rank", diagnostics);
  const bool ranks = InRange(m.ranks, 1, m, "ranks", diagnostics);
  const bool tp = InRange(m.tp, 1, m, "tp", diagnostics);
  const bool cp = InRange(m.cp, 1, m, "cp", diagnostics);
  const bool pp = InRange(m.pp, 1, m, "pp", diagnostics);
  const bool ep = InRange(m.ep, 1, m, "ep", diagnostics);
  const bool expert_tp = InRange(m.expert_tp, 1, m, "expert_tp", diagnostics);
  const bool dense = ranks && tp && cp && pp, expert = ranks && expert_tp && ep && pp;
  return {dense, expert, dense && expert && first};
}

int64_t NextMultiple(int64_t value, int64_t of) { return (value + of - 1) / of * of; }

// Ranks that are a multiple of `parts`, for a help: only as many as a plan may have.
std::string RanksFor(int64_t parts, int64_t ranks) {
  if (parts > kMostRanks) return absl::StrCat("use smaller parallel sizes: a plan has at most ", kMostRanks, " ranks");
  if (ranks < parts) return absl::StrCat("use ", parts, " ranks or a multiple, or smaller parallel sizes");
  const int64_t less = ranks / parts * parts, more = NextMultiple(ranks, parts);
  return absl::StrCat("use ", less, more > kMostRanks ? "" : absl::StrCat(" or ", more),
                      " ranks, or other parallel sizes");
}

// Points at the sizes that a message names.
void NoteSizes(Diagnostic& problem, std::initializer_list<std::pair<const char*, const Located<int64_t>*>> sizes) {
  for (const auto& [name, size] : sizes) {
    if (size->where.known()) problem.notes.push_back({size->where, absl::StrCat(name, " is ", **size, " here")});
  }
}

// tp x cp x pp must divide the ranks; the quotient is dp.
bool CheckDenseView(const ModuleRecipe& m, Diagnostics& diagnostics) {
  const int64_t parts = *m.tp * *m.cp * *m.pp;
  if (*m.ranks % parts == 0) return true;
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kGridDoesNotFit, m.ranks.where,
      absl::StrCat("module ", *m.name, " has ", *m.ranks, *m.ranks == 1 ? " rank" : " ranks",
                   ", not a multiple of tp x cp x pp = ", *m.tp, " x ", *m.cp, " x ", *m.pp, " = ", parts),
      RanksFor(parts, *m.ranks));
  NoteSizes(problem, {{"tp", &m.tp}, {"cp", &m.cp}, {"pp", &m.pp}});
  return false;
}

// expert_tp x ep x pp must divide them too; the quotient is expert_dp. ep need not divide dp: the two views share only
// pp.
bool CheckExpertView(const ModuleRecipe& m, Diagnostics& diagnostics) {
  const int64_t parts = *m.expert_tp * *m.ep * *m.pp;
  if (*m.ranks % parts == 0) return true;
  Diagnostic& problem =
      diagnostics.Error(DiagnosticKind::kExpertGridDoesNotFit, m.ep.where.known() ? m.ep.where : m.ranks.where,
                        absl::StrCat("module ", *m.name, " has ", *m.ranks, *m.ranks == 1 ? " rank" : " ranks",
                                     ", not a multiple of expert_tp x ep x pp = ", *m.expert_tp, " x ", *m.ep, " x ",
                                     *m.pp, " = ", parts),
                        absl::StrCat("choose ep so that expert_tp x ep x pp divides ", *m.ranks));
  NoteSizes(problem, {{"ranks", &m.ranks}, {"expert_tp", &m.expert_tp}, {"pp", &m.pp}});
  return false;
}

// dp follows from the other sizes. A recipe may still write it, as a check of its own arithmetic.
bool CheckWrittenDp(const ModuleRecipe& m, int64_t dp, Diagnostics& diagnostics) {
  if (!AllKnown(m.dp)) return false;
  if (!m.dp || **m.dp == dp) return true;
  const int64_t written = **m.dp * *m.tp * *m.cp * *m.pp;
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kDataParallelMismatch, m.dp->where,
      absl::StrCat("dp of module ", *m.name, " is written as ", **m.dp, ", but ", *m.ranks, " ranks / (tp ", *m.tp,
                   " x cp ", *m.cp, " x pp ", *m.pp, ") = ", dp),
      written > kMostRanks ? absl::StrCat("write dp: ", dp, ", or leave dp out")
                           : absl::StrCat("write dp: ", dp, ", leave dp out, or give the module ", written, " ranks"));
  NoteSizes(problem, {{"ranks", &m.ranks}});
  return false;
}

}  // namespace

std::optional<Grid> DeriveGrid(const ModuleRecipe& m, Diagnostics& diagnostics) {
  const Views known = SizesInRange(m, diagnostics);
  // Both views are checked even if one fails, so that one run reports both.
  const bool dense = known.dense && CheckDenseView(m, diagnostics);
  const bool expert = known.expert && CheckExpertView(m, diagnostics);
  if (!known.all) {
    if (dense) CheckWrittenDp(m, *m.ranks / (*m.tp * *m.cp * *m.pp), diagnostics);
    return std::nullopt;
  }
  const int64_t dp = *m.ranks / (*m.tp * *m.cp * *m.pp), expert_dp = *m.ranks / (*m.expert_tp * *m.ep * *m.pp);
  if (!dense || !CheckWrittenDp(m, dp, diagnostics) || !expert) return std::nullopt;
  auto size = [](int64_t value) { return static_cast<int>(value); };
  return Grid{.first_rank = size(*m.first_rank),
              .tp = size(*m.tp),
              .cp = size(*m.cp),
              .dp = size(dp),
              .pp = size(*m.pp),
              .expert_tp = size(*m.expert_tp),
              .ep = size(*m.ep),
              .expert_dp = size(expert_dp)};
}

int WorldSizeOf(const std::vector<Grid>& grids) {
  int end = 0;
  for (const Grid& grid : grids) end = std::max(end, grid.first_rank + grid.ranks());
  return end;
}

}  // namespace planwright
