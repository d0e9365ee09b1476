#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/estimate/step_speed.h"
#include "planner/estimate/step_time.h"
#include "planner/show/quantities.h"
#include "planner/show/show.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

constexpr size_t kMostCosts = 10;
constexpr size_t kMostKinds = 4;  // of a role on the critical path

constexpr const char* kKnownWords[] = {"measured", "between", "estimated"};

std::string Percent(double part, double whole) {
  return absl::StrFormat("%.1f %%", whole > 0 ? 100 * part / whole : 0);
}

// "language.s0", "language.s0, no sample of radio_encoder"
std::string NameOf(const RoleTime& role) {
  return role.what.empty() ? role.role->name : absl::StrCat(role.role->name, ", ", role.what);
}

// For which ranks a role waits most.
std::string WaitsFor(const StepTime& time, size_t index) {
  const RoleTime& role = time.roles[index];
  if (role.waits_for < 0) return "";
  if (role.waits_for == static_cast<int>(index)) return "the rank with most expert rows";
  return NameOf(time.roles[static_cast<size_t>(role.waits_for)]);
}

std::array<double, 3> KnownShares(const StepTime& time) {
  std::array<double, 3> seconds{};
  double all = 0;
  for (const StepCost& cost : time.costs) {
    if (!cost.work()) continue;
    for (size_t k = 0; k < seconds.size(); ++k) seconds[k] += cost.by_known[k], all += cost.by_known[k];
  }
  for (double& share : seconds) share = all > 0 ? share / all : 0;
  return seconds;
}

// "measured", "measured 80 %, estimated 20 %"
std::string KnownText(const std::array<double, 3>& shares) {
  std::string text;
  for (size_t k = 0; k < shares.size(); ++k) {
    if (shares[k] > 0.9995) return kKnownWords[k];
    if (shares[k] > 0.0005)
      absl::StrAppend(&text, text.empty() ? "" : ", ", kKnownWords[k], " ", Percent(shares[k], 1));
  }
  return text;
}

std::array<double, 3> SharesOf(const StepCost& cost) {
  std::array<double, 3> shares{};
  for (size_t k = 0; k < shares.size(); ++k) shares[k] = cost.seconds > 0 ? cost.by_known[k] / cost.seconds : 0;
  return shares;
}

std::string SpeedText(const Plan& plan, const StepTime& time) {
  const StepSpeed speed = SpeedOf(plan, time);
  return absl::StrCat("a step takes ", SecondsText(time.length), " on ", Counted(plan.world_size, "GPU"), " (",
                      plan.cluster.gpu, "): ", absl::StrFormat("%.5g", speed.tokens_per_second),
                      " tokens a second on each, MFU ", speed.images_known ? "" : "at most ", Percent(speed.mfu, 1),
                      "; the budget of ", WithCommas(plan.budget.steps), " steps takes ",
                      absl::StrFormat("%.4g h, %.4g GPU-hours", speed.hours, speed.gpu_hours),
                      ". How times are known: ", KnownText(KnownShares(time)), ".");
}

// By role: what bounds the step there.
std::string PathText(const StepTime& time, size_t width) {
  std::map<int, double> by_role;
  for (const PathPart& part : time.path) by_role[part.role] += part.seconds;
  std::vector<std::pair<double, int>> roles;
  for (const auto& [role, seconds] : by_role) roles.emplace_back(seconds, role);
  std::sort(roles.rbegin(), roles.rend());
  std::string text;
  for (const auto& [seconds, role] : roles) {
    if (seconds < 0.005 * time.length) continue;
    std::string line =
        absl::StrCat("  ", NameOf(time.roles[static_cast<size_t>(role)]), " ", Percent(seconds, time.length), ":");
    size_t kinds = 0;
    for (const PathPart& part : time.path) {
      if (part.role != role || kinds == kMostKinds) continue;
      absl::StrAppend(&line, kinds++ > 0 ? "," : "", " ", part.kind == "launching" ? "" : part.part + " ", part.kind,
                      " ", Percent(part.seconds, time.length));
    }
    absl::StrAppend(&text, Wrapped(line, width, 4), "\n");
  }
  return text;
}

std::string RolesText(const StepTime& time, size_t width) {
  Table table({"role", "ranks", "busy", "exposed communication", "waiting", "launching", "waits most for"});
  for (size_t r = 0; r < time.roles.size(); ++r) {
    const RoleTime& role = time.roles[r];
    table.Add({NameOf(role), WithCommas(role.count()), Percent(role.busy, time.length),
               Percent(role.communication, time.length), Percent(role.waiting, time.length),
               Percent(role.launching, time.length), WaitsFor(time, r)});
  }
  return table.Text("", width);
}

std::string CostsText(const StepTime& time, size_t width) {
  Table table({"part", "kind", "of a step", "seconds", "known"});
  for (size_t i = 0; i < std::min(kMostCosts, time.costs.size()); ++i) {
    const StepCost& cost = time.costs[i];
    table.Add({cost.part, cost.kind, Percent(cost.seconds, time.length), SecondsText(cost.seconds),
               cost.work() ? KnownText(SharesOf(cost)) : ""});
  }
  return table.Text("", width);
}

nlohmann::ordered_json SharesJson(const std::array<double, 3>& shares) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t k = 0; k < shares.size(); ++k) json[kKnownWords[k]] = shares[k];
  return json;
}

}  // namespace

std::string ShowTime(const Plan& plan, size_t width) {
  const StepTime time = TimeStep(plan);
  std::string text =
      time.seconds
          ? Wrapped(SpeedText(plan, time), width)
          : Wrapped("the speed of the device is unknown (cluster.gpu is " + plan.cluster.gpu +
                        "), so a step has no seconds: shares are of its FLOPs, and communication takes no time",
                    width);
  absl::StrAppend(&text, "\n\n", RolesText(time, width), "\n");
  absl::StrAppend(&text, "What bounds the step: the chain of work that no rank could do sooner.\n",
                  PathText(time, width), "\n");
  absl::StrAppend(&text, "The largest costs, on average over all ranks:\n", CostsText(time, width));
  return text;
}

nlohmann::ordered_json ShowTimeJson(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  const StepTime time = TimeStep(plan);
  Json json = Json::object();
  json["seconds"] = time.seconds ? Json(time.length) : Json();
  json["waiting"] = time.bubble;
  if (time.seconds) {
    const StepSpeed speed = SpeedOf(plan, time);
    json["tokens_per_second_per_gpu"] = speed.tokens_per_second;
    json["mfu"] = speed.mfu;
    json["images_known"] = speed.images_known;
    json["steps"] = plan.budget.steps;
    json["hours"] = speed.hours;
    json["gpu_hours"] = speed.gpu_hours;
    json["known"] = SharesJson(KnownShares(time));
  }
  // Shares of the step, so that they mean something without a known GPU.
  const auto share = [&](double seconds) { return time.length > 0 ? seconds / time.length : 0; };
  json["roles"] = Json::array();
  for (size_t r = 0; r < time.roles.size(); ++r) {
    const RoleTime& role = time.roles[r];
    json["roles"].push_back({{"role", role.role->name},
                             {"what", role.what},
                             {"ranks", role.count()},
                             {"busy", share(role.busy)},
                             {"exposed_communication", share(role.communication)},
                             {"waiting", share(role.waiting)},
                             {"launching", share(role.launching)},
                             {"waits_for", WaitsFor(time, r)}});
  }
  json["path"] = Json::array();
  for (const PathPart& part : time.path) {
    json["path"].push_back({{"role", NameOf(time.roles[static_cast<size_t>(part.role)])},
                            {"part", part.part},
                            {"kind", part.kind},
                            {"share", share(part.seconds)}});
  }
  json["costs"] = Json::array();
  for (const StepCost& cost : time.costs) {
    Json item = {{"part", cost.part},
                 {"kind", cost.kind},
                 {"communication", cost.communication},
                 {"share", share(cost.seconds)}};
    if (cost.work()) item["known"] = SharesJson(SharesOf(cost));
    json["costs"].push_back(std::move(item));
  }
  return json;
}

}  // namespace planwright
