#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/state/checkpoint/disk_use.h"
#include "planner/views/show/image_words.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"
#include "planner/views/show/time_words.h"

namespace planwright {
namespace {

constexpr size_t kMostKinds = 4;  // of a role on the critical path
constexpr size_t kMostEp = 16;    // coordinates in a line; --json has all

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
    std::string line = absl::StrCat("  ", NameOfRanks(time.roles[static_cast<size_t>(role)]), " ",
                                    ShareText(seconds, time.length), ":");
    size_t kinds = 0;
    for (const PathPart& part : time.path) {
      if (part.role != role || kinds == kMostKinds) continue;
      absl::StrAppend(&line, kinds++ > 0 ? "," : "", " ", part.kind == "launching" ? "" : part.part + " ", part.kind,
                      " ", ShareText(part.seconds, time.length));
    }
    absl::StrAppend(&text, Wrapped(line, width, 4), "\n");
  }
  return text;
}

std::string RolesText(const StepTime& time, size_t width) {
  Table table({"role", "ranks", "busy", "exposed communication", "waiting", "launching", "waits most for"});
  for (size_t r = 0; r < time.roles.size(); ++r) {
    const RoleTime& role = time.roles[r];
    table.Add({NameOfRanks(role), WithCommas(role.count()), ShareText(role.busy, time.length),
               ShareText(role.communication, time.length), ShareText(role.waiting, time.length),
               ShareText(role.launching, time.length), WaitsForText(time, r)});
  }
  return table.Text("", width);
}

std::string CostsText(const StepTime& time, size_t width) {
  Table table({"part", "kind", "of a step", time.seconds ? "seconds" : "FLOPs", "known"});
  for (size_t i = 0; i < std::min(kMostCosts, time.costs.size()); ++i) {
    const StepCost& cost = time.costs[i];
    table.Add({cost.part, cost.kind, ShareText(cost.seconds, time.length),
               time.seconds ? SecondsText(cost.seconds) : FlopText(cost.seconds),
               cost.work() ? KnownText(KnownShares(cost)) : ""});
  }
  return table.Text("", width);
}

nlohmann::ordered_json SharesJson(const std::array<double, 3>& shares) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t k = 0; k < shares.size(); ++k) json[KnownWord(k)] = shares[k];
  return json;
}

// How unevenly the rows of experts were spread in a recording.
std::string RowsText(const ExpertRows& rows, size_t width) {
  Table table({"layer", "fullest rank of a microbatch", "its fullest expert", "over all microbatches",
               "rows by ep coordinate"});
  for (const LayerRows& layer : rows.layers) {
    std::string ranks;
    for (size_t e = 0; e < std::min(kMostEp, layer.ranks.size()); ++e)
      absl::StrAppendFormat(&ranks, "%s%.2f", e > 0 ? " " : "", layer.ranks[e]);
    if (layer.ranks.size() > kMostEp) absl::StrAppend(&ranks, " ...");
    table.Add({layer.frame, absl::StrFormat("%.3f", layer.fullest), absl::StrFormat("%.3f", layer.fullest_expert),
               absl::StrFormat("%.3f", *std::max_element(layer.ranks.begin(), layer.ranks.end())), ranks});
  }
  const std::string steps = rows.first_step == rows.last_step
                                ? absl::StrCat("step ", rows.last_step)
                                : absl::StrCat("steps ", rows.first_step, "-", rows.last_step);
  return Wrapped(absl::StrCat("Rows of experts as recorded in ", steps,
                              ", as multiples of the mean of all ranks, or of all experts of the rank. All others "
                              "of an ep group wait for the fullest rank:"),
                 width) +
         "\n" + table.Text("", width);
}

// Null: no checkpoints are written. Null in it: not predicted.
nlohmann::ordered_json CheckpointJson(const Plan& plan, const StepTime& time) {
  using Json = nlohmann::ordered_json;
  if (plan.checkpoint.every_steps == 0) return Json();
  const SaveTime& save = time.save;
  const CheckpointCount count = CountCheckpoints(plan);
  const auto known = [&](double seconds) { return time.seconds && save.known ? Json(seconds) : Json(); };
  return {{"every_steps", plan.checkpoint.every_steps},
          {"bytes", time.seconds ? Json(save.bytes) : Json()},
          {"bytes_on_disk", BytesOnDisk(plan)},
          {"written", count.written},
          {"kept", count.kept},
          {"copy_seconds", known(save.copy)},
          {"longer_seconds", known(save.longer)},
          {"seconds_per_step", known(save.per_step())}};
}

}  // namespace

std::string ShowTime(const Plan& plan, const StepTime& time, const ExpertRows* rows, size_t width) {
  std::string text =
      time.seconds
          ? Wrapped(SpeedText(plan, time), width) + "\n" + Wrapped(KnownSentence(plan, time), width)
          : Wrapped("the speed of the device is unknown (cluster.gpu is " + plan.cluster.gpu +
                        "), so a step has no seconds: shares are of its FLOPs, and communication takes no time",
                    width);
  if (const std::string images = ImagesText(plan); !images.empty())
    absl::StrAppend(&text, "\n", Wrapped(images, width));
  if (const std::string documents = DocumentsText(plan); !documents.empty())
    absl::StrAppend(&text, "\n", Wrapped(documents, width));
  if (const std::string pictures = PicturesText(plan); time.seconds && !pictures.empty())
    absl::StrAppend(&text, "\n", Wrapped(pictures, width));
  if (const std::string saves = SaveText(plan, time); !saves.empty())
    absl::StrAppend(&text, "\n", Wrapped(saves, width));
  absl::StrAppend(&text, "\n\n", RolesText(time, width), "\n");
  absl::StrAppend(&text, "What bounds the step: the chain of work that no rank could do sooner.\n",
                  PathText(time, width), "\n");
  absl::StrAppend(&text, "The largest costs, on average over all ranks:\n", CostsText(time, width));
  if (rows != nullptr) absl::StrAppend(&text, "\n", RowsText(*rows, width));
  return text;
}

nlohmann::ordered_json ShowTimeJson(const Plan& plan, const StepTime& time, const ExpertRows* rows) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  json["seconds"] = time.seconds ? Json(time.length) : Json();
  json["waiting"] = time.bubble;
  if (!plan.data.encoders.empty()) json["images"] = ImagesJson(plan);
  if (plan.data.packed_documents) json["documents"] = DocumentsJson(plan);
  if (time.seconds) {
    const StepSpeed speed = SpeedOf(plan, time);
    json["tokens_per_second_per_rank"] = speed.tokens_per_second;
    json["mfu"] = speed.mfu > 0 ? Json(speed.mfu) : Json();
    json["images_known"] = speed.images_known;
    json["steps"] = plan.budget.steps;
    json["hours"] = speed.hours;
    json["rank_hours"] = speed.rank_hours;
    if (speed.evaluations > 0) {
      json["evaluations"] = speed.evaluations;
      json["evaluation_seconds"] = speed.evaluation;
    }
    json["known"] = SharesJson(KnownShares(time));
    if (const DeviceProfile& profile = plan.cluster.profile; !profile.scaled_from.empty()) {
      json["scaled_from"] = profile.scaled_from;
      json["scaled_by"] = Json::object();
      for (const ScaledUses& of : profile.scaled_by) json["scaled_by"][of.uses] = of.factor;
    }
  }
  json["checkpoint"] = CheckpointJson(plan, time);
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
                             {"waits_for", WaitsForText(time, r)}});
  }
  json["path"] = Json::array();
  for (const PathPart& part : time.path) {
    json["path"].push_back({{"role", NameOfRanks(time.roles[static_cast<size_t>(part.role)])},
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
    if (cost.work()) item["known"] = SharesJson(KnownShares(cost));
    json["costs"].push_back(std::move(item));
  }
  if (rows != nullptr) {
    json["expert_rows"] = {{"first_step", rows->first_step}, {"last_step", rows->last_step}, {"layers", Json::array()}};
    for (const LayerRows& layer : rows->layers) {
      json["expert_rows"]["layers"].push_back({{"layer", layer.frame},
                                               {"fullest", layer.fullest},
                                               {"fullest_expert", layer.fullest_expert},
                                               {"ranks", layer.ranks}});
    }
  }
  return json;
}

}  // namespace planwright
