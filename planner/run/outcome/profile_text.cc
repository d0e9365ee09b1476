#include "planner/run/outcome/profile_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/plan/ranks_text.h"

namespace planwright {
namespace {

constexpr size_t kMostMisses = 5;

std::string Milliseconds(double milliseconds) { return absl::StrFormat("%.3f", milliseconds); }
std::string Milliseconds(const std::optional<double>& milliseconds) {
  return milliseconds ? Milliseconds(*milliseconds) : "";
}

ProfileRow AllOf(const RoleProfile& role) {
  ProfileRow all{
      .name = "", .device = role.instructions, .slowest_rank = role.slowest_instructions, .idle_before = role.idle};
  for (const ProfilePart& part : role.parts) {
    all.times += part.whole.times, all.host += part.whole.host;
    if (part.whole.predicted) all.predicted = all.predicted.value_or(0) + *part.whole.predicted;
  }
  return all;
}

// How much longer or shorter the prediction is than what was measured.
std::string OffText(double measured, const std::optional<double>& predicted) {
  return predicted && measured > 0 ? absl::StrFormat("%+.0f%%", 100 * (*predicted / measured - 1)) : "";
}

// The rows of one role. The column of the slowest rank is there only if the role has several, those of the prediction
// if there is one.
class RoleTable {
 public:
  explicit RoleTable(const RoleProfile& role)
      : role_(role),
        table_(Cells({"", "times", "ms", "predicted", "off", "share", "slowest rank", "idle before", "host ms"})) {}

  std::string Text(size_t width) {
    for (const ProfilePart& part : role_.parts) {
      Add(part.whole.name, part.whole);
      for (const ProfileRow& row : part.kinds) Add("  " + row.name, row);
    }
    Add("all instructions", AllOf(role_));
    if (role_.communication > 0)
      AddTime("of these, communication", role_.communication, "", role_.predicted_communication);
    if (role_.waiting) AddTime("  until the last rank came", *role_.waiting, "", role_.predicted_waiting);
    // On one stream nothing overlaps, but times are rounded.
    if (role_.overlap > 0.0005) AddTime("counted twice (several streams)", -role_.overlap, "");
    AddTime("device idle", role_.idle, "");
    AddTime("step", role_.step, Milliseconds(role_.slowest_step), role_.predicted_step);
    return table_.Text("", width);
  }

 private:
  // Without the columns that this role does not have.
  std::vector<std::string> Cells(std::vector<std::string> cells) const {
    if (role_.ranks.size() == 1) cells.erase(cells.begin() + 6);
    if (!role_.predicted_step) cells.erase(cells.begin() + 3, cells.begin() + 5);
    return cells;
  }
  std::string Share(double milliseconds) const {
    return role_.step > 0 ? absl::StrFormat("%.1f%%", 100 * milliseconds / role_.step) : "";
  }
  void Add(const std::string& name, const ProfileRow& row) {
    table_.Add(Cells({name, absl::StrFormat("%.0f", row.times), Milliseconds(row.device), Milliseconds(row.predicted),
                      OffText(row.device, row.predicted), Share(row.device), Milliseconds(row.slowest_rank),
                      Milliseconds(row.idle_before), Milliseconds(row.host)}));
  }
  void AddTime(const std::string& name, double milliseconds, const std::string& slowest,
               const std::optional<double>& predicted = {}) {
    table_.Add(Cells({name, "", Milliseconds(milliseconds), Milliseconds(predicted), OffText(milliseconds, predicted),
                      Share(milliseconds), slowest, "", ""}));
  }

  const RoleProfile& role_;
  Table table_;
};

// The rows that are furthest from their prediction; empty: nothing was predicted.
std::string MissesText(const RunProfile& profile, size_t width) {
  const std::vector<ProfileMiss> misses = WorstMisses(profile, kMostMisses);
  if (misses.empty()) return "";
  Table table({"role", "part", "instruction", "ms", "predicted", "off by"});
  for (const ProfileMiss& miss : misses) {
    table.Add({miss.role, miss.part, miss.kind, Milliseconds(miss.measured), Milliseconds(miss.predicted),
               absl::StrFormat("%+.3f", miss.predicted - miss.measured)});
  }
  return "\nfurthest from the prediction, in ms of a step\n" + table.Text("", width);
}

}  // namespace

std::string RunProfileText(const RunProfile& profile, size_t width) {
  std::string text = absl::StrCat("\nprofile of ", StepRangeText(profile.steps), "\n");
  for (const RoleProfile& role : profile.roles) {
    absl::StrAppend(&text, "\nrole ", role.role, ", ", role.ranks.size() == 1 ? "rank " : "mean of ranks ",
                    RanksText(role.ranks), "; one step in ms\n", RoleTable(role).Text(width));
  }
  text += MissesText(profile, width);
  const bool predicted = std::any_of(profile.roles.begin(), profile.roles.end(),
                                     [](const RoleProfile& role) { return role.predicted_step.has_value(); });
  const std::string note = absl::StrCat(
      "ms: from the moment at which its stream comes to an instruction until the instruction is done. ",
      predicted ? "predicted: the same, as `plan show RECIPE time` predicts a step. " : "",
      "idle before: the device waited for it. host ms: what the host took to launch it. https://ui.perfetto.dev opens "
      "trace.json.gz of the run directory.");
  return text + "\n" + Wrapped(note, width) + "\n\n";
}

}  // namespace planwright
