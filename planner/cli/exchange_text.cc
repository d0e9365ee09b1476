#include "planner/cli/exchange_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"

namespace planwright {

std::string FindingsText(const Findings& findings) {
  std::string text;
  if (!findings.problems.empty()) {
    absl::StrAppend(&text, "error: ", Counted(static_cast<int64_t>(findings.problems.size()), "problem"), ":\n");
    for (const Finding& problem : findings.problems) {
      absl::StrAppend(&text, "  ", Printable(problem.where), problem.value.empty() ? "" : " = ",
                      Printable(problem.value), problem.message.empty() ? "" : " ", problem.message, "\n");
    }
  }
  for (const std::string& note : findings.notes) absl::StrAppend(&text, "note: ", Printable(note), "\n");
  return text;
}

void AddFindings(const Findings& findings, nlohmann::ordered_json& json) {
  json["problems"] = nlohmann::ordered_json::array();
  for (const Finding& problem : findings.problems)
    json["problems"].push_back({{"where", problem.where}, {"value", problem.value}, {"message", problem.message}});
  json["notes"] = findings.notes;
}

absl::StatusOr<std::set<std::string>> ListOption(const std::string& name, const std::string& text) {
  std::set<std::string> parts;
  for (const auto part : absl::StrSplit(text, ',')) {
    if (part.empty()) return absl::InvalidArgumentError("option `" + name + "` needs names with commas between them");
    parts.emplace(part);
  }
  return parts;
}

}  // namespace planwright
