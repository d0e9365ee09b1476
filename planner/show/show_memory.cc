#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/show/memory_categories.h"
#include "planner/show/show.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

constexpr int kBarWidth = 60;

// The categories' shares of `whole`, one after the other, and a mark where the device ends.
std::string Bar(const MemoryBytes& bytes, int64_t limit, int64_t whole) {
  std::string bar;
  int64_t reached = 0, cells = 0;
  for (const MemoryCategory& category : kMemoryCategories) {
    reached += bytes.*category.bytes;
    const int64_t end = static_cast<int64_t>(static_cast<double>(reached) / static_cast<double>(whole) * kBarWidth + 0.5);
    for (; cells < end; ++cells) bar += category.fill;
  }
  if (limit == 0) return bar;
  const int64_t mark = std::min<int64_t>(kBarWidth, static_cast<int64_t>(static_cast<double>(limit) / static_cast<double>(whole) * kBarWidth + 0.5));
  for (; cells < mark; ++cells) bar += "·";
  return bar + (bytes.total() > limit ? " beyond the device" : "|");
}

nlohmann::ordered_json BytesJson(const MemoryBytes& bytes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const MemoryCategory& category : kMemoryCategories) json[category.name] = bytes.*category.bytes;
  return json;
}

}  // namespace

std::string ShowMemory(const Plan& plan) {
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  const MemoryUnit unit = UnitOf(estimates);
  int64_t whole = 1;
  for (const RoleEstimate& estimate : estimates) whole = std::max({whole, estimate.planned.total(), estimate.limit});
  const int64_t limit = estimates.empty() ? 0 : estimates.front().limit;
  std::string text = limit > 0 ? absl::StrFormat("of each rank, on a %s of %s\n\n", plan.cluster.gpu, unit.Text(limit))
                               : std::string("of each rank; cluster.gpu is none, so no limit is known\n\n");
  Table table({"role", "parameters", "gradients", "optimizer", "activations", "communication", "workspace", "in all", "worst case"});
  for (const RoleEstimate& estimate : estimates) {
    std::vector<std::string> row = {estimate.role->name};
    for (const MemoryCategory& category : kMemoryCategories) row.push_back(unit.Text(estimate.planned.*category.bytes));
    row.push_back(unit.Text(estimate.planned.total()));
    row.push_back(unit.Text(estimate.worst.total()));
    table.Add(std::move(row));
  }
  text += table.Text("") + "\n";
  for (const RoleEstimate& estimate : estimates) {
    text += estimate.role->name + "\n  " + Bar(estimate.planned, estimate.limit, whole) + "\n";
    if (!estimate.fullest.empty()) text += "  fullest at " + estimate.fullest + "\n";
  }
  text += "\n ";
  for (const MemoryCategory& category : kMemoryCategories) text += std::string(" ") + category.fill + " " + category.name;
  return text + "\nworst case: every run-time size at its maximum. " + unit.name + (unit.bytes == 1e9 ? " is 1e9" : " is 1e6") +
         " bytes; docs/memory.md has the formulas.\n";
}

nlohmann::ordered_json ShowMemoryJson(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json roles = Json::array();
  for (const RoleEstimate& estimate : EstimateMemory(plan)) {
    Json role = {{"role", estimate.role->name}, {"bytes", BytesJson(estimate.planned)}, {"total", estimate.planned.total()}};
    role["limit"] = estimate.limit > 0 ? Json(estimate.limit) : Json();
    role["worst_bytes"] = BytesJson(estimate.worst);
    role["worst_total"] = estimate.worst.total();
    role["fullest_at"] = estimate.fullest;
    roles.push_back(std::move(role));
  }
  return {{"roles", std::move(roles)}};
}

}  // namespace planwright
