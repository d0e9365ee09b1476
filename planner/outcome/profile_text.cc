#include "planner/outcome/profile_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

std::string Milliseconds(double milliseconds) { return absl::StrFormat("%.3f", milliseconds); }

ProfileRow AllOf(const RoleProfile& role) {
  ProfileRow all{
      .name = "", .device = role.instructions, .slowest_rank = role.slowest_instructions, .idle_before = role.idle};
  for (const ProfilePart& part : role.parts) all.times += part.whole.times, all.host += part.whole.host;
  return all;
}

// The rows of one role. The column of the slowest rank is there only if the role has several.
class RoleTable {
 public:
  explicit RoleTable(const RoleProfile& role)
      : role_(role), table_(Cells("", "times", "ms", "share", "slowest rank", "idle before", "host ms")) {}

  std::string Text(size_t width) {
    for (const ProfilePart& part : role_.parts) {
      Add(part.whole.name, part.whole);
      for (const ProfileRow& row : part.kinds) Add("  " + row.name, row);
    }
    Add("all instructions", AllOf(role_));
    if (role_.communication > 0) AddTime("of these, communication", role_.communication, "");
    // On one stream nothing overlaps, but times are rounded.
    if (role_.overlap > 0.0005) AddTime("counted twice (several streams)", -role_.overlap, "");
    AddTime("device idle", role_.idle, "");
    AddTime("step", role_.step, Milliseconds(role_.slowest_step));
    return table_.Text("", width);
  }

 private:
  std::vector<std::string> Cells(const std::string& name, const std::string& times, const std::string& ms,
                                 const std::string& share, const std::string& slowest, const std::string& idle,
                                 const std::string& host) const {
    if (role_.ranks.size() == 1) return {name, times, ms, share, idle, host};
    return {name, times, ms, share, slowest, idle, host};
  }
  std::string Share(double milliseconds) const {
    return role_.step > 0 ? absl::StrFormat("%.1f%%", 100 * milliseconds / role_.step) : "";
  }
  void Add(const std::string& name, const ProfileRow& row) {
    table_.Add(Cells(name, absl::StrFormat("%.0f", row.times), Milliseconds(row.device), Share(row.device),
                     Milliseconds(row.slowest_rank), Milliseconds(row.idle_before), Milliseconds(row.host)));
  }
  void AddTime(const std::string& name, double milliseconds, const std::string& slowest) {
    table_.Add(Cells(name, "", Milliseconds(milliseconds), Share(milliseconds), slowest, "", ""));
  }

  const RoleProfile& role_;
  Table table_;
};

}  // namespace

std::string RunProfileText(const RunProfile& profile, size_t width) {
  std::string text = absl::StrCat("\nprofile of ", StepRangeText(profile.steps), "\n");
  for (const RoleProfile& role : profile.roles) {
    absl::StrAppend(&text, "\nrole ", role.role, ", ", role.ranks.size() == 1 ? "rank " : "mean of ranks ",
                    RanksText(role.ranks), "; one step in ms\n", RoleTable(role).Text(width));
  }
  const std::string note =
      "ms: from the moment at which its stream comes to an instruction until the instruction is done. idle before: the "
      "device waited for it. host ms: what the host took to launch it. https://ui.perfetto.dev "
      "opens trace.json.gz of the run directory.";
  return text + "\n" + Wrapped(note, width) + "\n\n";
}

}  // namespace planwright
