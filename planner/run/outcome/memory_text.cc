#include "planner/run/outcome/memory_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/predict/estimate/memory.h"

namespace planwright {
namespace {

// "+1.2 %"
std::string Difference(const MemoryLine& line) {
  if (!line.planned || *line.planned == 0) return "";
  return absl::StrFormat("%+.1f %%",
                         100.0 * (static_cast<double>(line.measured) / static_cast<double>(*line.planned) - 1));
}

void Add(const MemoryLine& line, Table& table) {
  table.Add(
      {line.name, line.planned ? GigabytesText(*line.planned) : "", GigabytesText(line.measured), Difference(line)});
}

}  // namespace

std::string RunMemoryText(const RunMemory& memory, size_t width) {
  std::string text;
  for (const RoleMemory& role : memory.roles) {
    Table table({"", "planned", "most held", "difference"});
    for (const MemoryLine& line : role.lines) Add(line, table);
    Add(role.all, table);
    absl::StrAppend(&text, "\nmemory of role ", role.role, ", rank ", role.rank, "\n", table.Text("", width));
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace planwright
