#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/predict/estimate/host_memory.h"
#include "planner/views/show/image_words.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

constexpr int kBarWidth = 60;  // characters of `whole`

// A bar of one role: its categories one after the other, then how far the worst case goes, and a mark where the device
// ends. `whole`: bytes of the full width, the same for all roles, so that bars can be compared.
std::string Bar(const RoleEstimate& estimate, int64_t whole) {
  const auto cells_to = [&](int64_t bytes) {
    const double share = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(whole));
    return static_cast<int>(share * kBarWidth + 0.5);
  };
  std::string bar;
  int64_t reached = 0;
  int cells = 0;
  // Up to `bytes`, counted from the bar's start: rounding errors of the parts do not add up.
  const auto fill = [&](int64_t bytes, const char* with) {
    for (; cells < cells_to(bytes); ++cells) bar += with;
  };
  for (const MemoryCategory& category : kMemoryCategories)
    fill(reached += estimate.planned.*category.bytes, category.fill);
  fill(estimate.worst.total(), "-");  // nothing where the worst case is the planned one
  if (estimate.limit == 0) return bar;
  fill(estimate.limit, "·");
  if (reached > estimate.limit) return bar + " beyond the device";
  // Short: bar and note together fit in 80 characters.
  return bar + "|" + (estimate.worst.total() > estimate.limit ? " at worst beyond" : "");
}

nlohmann::ordered_json BytesJson(const MemoryBytes& bytes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const MemoryCategory& category : kMemoryCategories) json[category.name] = bytes.*category.bytes;
  return json;
}

// Host memory of a rank, where it is limited or holds copies of checkpoints.
std::string HostText(const Plan& plan, size_t width) {
  if (plan.cluster.host_memory == 0 && plan.checkpoint.every_steps == 0) return "";
  const auto gigabytes = [](int64_t bytes) { return absl::StrFormat("%.3f GB", static_cast<double>(bytes) / 1e9); };
  Table table({"role", "rank itself", "checkpoint", "copied through"});
  for (const HostMemory& host : EstimateHostMemory(plan)) {
    table.Add({host.role->name, gigabytes(host.besides), gigabytes(host.checkpoint),
               gigabytes(host.copies(plan.checkpoint.copy_bytes))});
  }
  const std::string limit = plan.cluster.host_memory > 0
                                ? absl::StrFormat("the ranks of a node share %.3f GB", plan.cluster.host_memory)
                                : std::string("cluster.host_memory is not given, so no limit is known");
  return "\nhost memory of each rank; " + limit + "\n\n" + table.Text("", width);
}

}  // namespace

std::string ShowMemory(const Plan& plan, size_t width) {
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  const MemoryUnit unit = MemoryUnitOf(estimates);
  int64_t whole = 1;  // a plan without bytes is shown too
  for (const RoleEstimate& estimate : estimates) whole = std::max({whole, estimate.planned.total(), estimate.limit});
  const int64_t limit = estimates.empty() ? 0 : estimates.front().limit;
  std::string text = limit > 0 ? absl::StrFormat("of each rank, on a %s of %s\n\n", plan.cluster.gpu, unit.Text(limit))
                               : std::string("of each rank; cluster.gpu is none, so no limit is known\n\n");
  Table table({"role", "parameters", "gradients", "optimizer", "activations", "communication", "workspace", "in all",
               "worst case"});
  for (const RoleEstimate& estimate : estimates) {
    std::vector<std::string> row = {estimate.role->name};
    for (const MemoryCategory& category : kMemoryCategories) row.push_back(unit.Text(estimate.planned.*category.bytes));
    row.push_back(unit.Text(estimate.planned.total()));
    row.push_back(unit.Text(estimate.worst.total()));
    table.Add(std::move(row));
  }
  text += table.Text("", width) + "\n";
  for (const RoleEstimate& estimate : estimates) {
    text += estimate.role->name + "\n  " + Bar(estimate, whole) + "\n";
    if (!estimate.fullest.empty()) text += "  fullest at " + estimate.fullest + "\n";
  }
  std::string legend;
  for (const MemoryCategory& category : kMemoryCategories)
    legend += std::string(" ") + category.fill + " " + category.name;
  const std::string note = absl::StrFormat(
      "worst case (-): every run-time size at its maximum. %s is 1e%d bytes; docs/memory.md has the formulas.",
      unit.name, unit.bytes == 1e9 ? 9 : 6);
  std::string images = ImagesText(plan);
  if (!images.empty()) images = Wrapped(images, width) + "\n";
  return text + "\n" + Wrapped(legend, width, 1) + "\n" + Wrapped(note, width) + "\n" + images + HostText(plan, width);
}

nlohmann::ordered_json ShowMemoryJson(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json roles = Json::array();
  const std::vector<HostMemory> hosts = EstimateHostMemory(plan);
  for (const RoleEstimate& estimate : EstimateMemory(plan)) {
    Json role = {
        {"role", estimate.role->name}, {"bytes", BytesJson(estimate.planned)}, {"total", estimate.planned.total()}};
    role["limit"] = estimate.limit > 0 ? Json(estimate.limit) : Json();
    role["worst_bytes"] = BytesJson(estimate.worst);
    role["worst_total"] = estimate.worst.total();
    role["fullest_at"] = estimate.fullest;
    const HostMemory& host = hosts[roles.size()];
    role["host_bytes"] = {
        {"rank", host.besides}, {"checkpoint", host.checkpoint}, {"copies", host.copies(plan.checkpoint.copy_bytes)}};
    roles.push_back(std::move(role));
  }
  const double given = plan.cluster.host_memory;
  return {{"roles", std::move(roles)}, {"host_memory", given > 0 ? Json(given) : Json()}};
}

}  // namespace planwright
