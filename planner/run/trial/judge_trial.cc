#include "planner/run/trial/judge_trial.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/readable.h"
#include "planner/plan/ranks_text.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/rates/rates.h"
#include "planner/run/trial/step_communications.h"

namespace planwright {
namespace {

using Verdict = TrialLine::Verdict;

std::string Counted(int64_t count, const char* one, const char* more) {
  return absl::StrCat(count, " ", count == 1 ? one : more);
}

// "node0, node1, node2 and 5 more"
std::string Names(const std::set<std::string>& names) {
  constexpr size_t kMost = 4;
  std::vector<std::string> shown(names.begin(),
                                 std::next(names.begin(), static_cast<int>(std::min(names.size(), kMost))));
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      names.size() > kMost ? absl::StrCat(" and ", names.size() - kMost, " more") : "");
}

// "16.8 MB", "595 kB", "32 bytes"
std::string MessageText(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " bytes");
  const bool large = bytes >= 1'000'000;
  return absl::StrFormat("%.3g %s", static_cast<double>(bytes) / (large ? 1e6 : 1e3), large ? "MB" : "kB");
}

class Judge {
 public:
  Judge(const Plan& plan, const TrialFacts& facts, const TrialEnd& end) : plan_(plan), facts_(facts), end_(end) {
    for (const auto& rank : facts.ranks) {
      if (!rank) continue;
      hosts_.insert(rank->host);
      ready_ += rank->ready > 0 ? 1 : 0;
    }
  }

  TrialVerdict Run() {
    Start();
    Files();
    Memory();
    Loss();
    Time();
    Links();
    // All that is asked about was good, and then a rank failed: while links were timed, or when it wrote its memory.
    if (end_.exit_code != 0 && trial_.passed()) Fail("end", end_.cause, MendOf(end_.exit_code));
    if (!facts_.steps.empty() && facts_.ranks[0] && facts_.ranks[0]->ready > 0) {
      trial_.first_step = FirstStep{.agents = end_.begun - end_.allocated,
                                    .start = facts_.ranks[0]->ready - end_.begun,
                                    .step = facts_.steps[0].step_seconds};
    }
    return std::move(trial_);
  }

 private:
  void Pass(const char* what, std::string text) { trial_.lines.push_back({Verdict::kPass, what, std::move(text), ""}); }
  void Open(const char* what, std::string text) { trial_.lines.push_back({Verdict::kOpen, what, std::move(text), ""}); }
  void Fail(const char* what, std::string text, std::string mend) {
    trial_.lines.push_back({Verdict::kFail, what, std::move(text), std::move(mend)});
  }
  bool all_ready() const { return ready_ == plan_.world_size; }
  std::string HostOf(int rank) const {
    const auto& one = facts_.ranks[static_cast<size_t>(rank)];
    return one ? one->host : "a node of which nothing is known";
  }
  std::string MendOf(int exit_code) const {
    const ExitStatusRow* row = FindExitStatus(exit_code);
    return row != nullptr && *row->mend != '\0' ? row->mend : "the logs of the ranks tell more";
  }

  void Start() {
    if (!all_ready()) {
      return Fail("start",
                  absl::StrCat(ready_, " of ", Counted(plan_.world_size, "rank", "ranks"), " were ready: ", end_.cause),
                  MendOf(end_.exit_code));
    }
    const auto slowest = std::max_element(facts_.ranks.begin(), facts_.ranks.end(),
                                          [](const auto& a, const auto& b) { return a->start_up < b->start_up; });
    Pass("start",
         absl::StrCat(Counted(plan_.world_size, "rank", "ranks"), " on ", Names(hosts_),
                      " loaded, met and joined their groups; the slowest, rank ", (*slowest)->rank,
                      ", was ready after ", DurationText((*slowest)->start_up), ": ", (*slowest)->start_parts));
  }

  void Files() {
    const size_t count = facts_.files.paths.size();
    std::map<std::string, std::vector<TriedFile>> read;  // by host
    for (const auto& rank : facts_.ranks) {
      if (rank && rank->files.size() == count && count > 0) read[rank->host] = rank->files;
    }
    if (count == 0) return;
    if (read.empty()) return Open("files", "no node came so far");
    int64_t problems = 0;
    std::string first;
    for (const auto& [host, files] : read) {
      for (size_t i = 0; i < count; ++i) {
        std::string problem = files[i].problem;
        const TriedFile& other = read.begin()->second[i];
        if (problem.empty() && other.problem.empty() && files[i].bytes != other.bytes)
          problem = absl::StrCat(facts_.files.paths[i], " has ", files[i].bytes, " bytes, and ", other.bytes, " on ",
                                 read.begin()->first);
        if (problem.empty()) continue;
        if (++problems == 1) first = absl::StrCat("on ", host, ": ", problem);
      }
    }
    const std::string more = facts_.files.left_out > 0 ? absl::StrCat(" (of ", count + facts_.files.left_out, ")") : "";
    if (problems > 0) {
      return Fail("files", absl::StrCat(first, problems > 1 ? absl::StrCat(", and ", problems - 1, " more") : ""),
                  "mount or copy what the recipe names on every node, under the same path");
    }
    std::set<std::string> hosts;
    for (const auto& [host, files] : read) hosts.insert(host);
    Pass("files", absl::StrCat(Counted(static_cast<int64_t>(count), "file", "files"), more, " of data and weights ",
                               count == 1 ? "is" : "are", " readable on ", Names(hosts)));
  }

  void Memory() {
    if (ready_ == 0) return;
    end_.on_gpus ? MemoryOfGpus() : MemoryOfHosts();
  }

  void MemoryOfGpus() {
    const std::vector<RoleEstimate> estimates = EstimateMemory(plan_);
    for (const RoleEstimate& estimate : estimates) {
      // The context is there when a rank looks; what libraries take beside it is still to come.
      const int64_t needed = estimate.planned.total() - std::min(estimate.libraries, kContextBytes);
      for (const auto& rank : facts_.ranks) {
        if (!rank || rank->device_total == 0 || plan_.RoleOf(rank->rank) != estimate.role) continue;
        if (rank->device_free >= needed) continue;
        return Fail("memory",
                    absl::StrCat("the GPU of rank ", rank->rank, " on ", rank->host, " had ",
                                 GigabytesText(rank->device_free), " free of ", GigabytesText(rank->device_total),
                                 ", and ", GigabytesText(needed), " are planned"),
                    "end what else runs there (`nvidia-smi`), or take the node out");
      }
    }
    if (!end_.memory || end_.memory->roles.empty()) {
      if (end_.exit_code == 0) Open("memory", end_.memory ? end_.memory->why_not : "not measured");
      return;
    }
    for (const RoleMemory& role : end_.memory->roles) {
      int64_t planned = 0, measured = 0;
      for (const MemoryLine& line : role.lines) {
        if (!line.planned || line.name == "context and libraries") continue;
        planned += *line.planned, measured += line.measured;
      }
      const auto& rank = facts_.ranks[static_cast<size_t>(role.rank)];
      const std::string text = absl::StrCat(
          role.role, ", rank ", role.rank, ": tensors held ", GigabytesText(measured), ", planned ",
          GigabytesText(planned), "; in all ", GigabytesText(role.all.measured), " of ",
          GigabytesText(rank ? rank->device_total : 0), ", planned ", GigabytesText(role.all.planned.value_or(0)));
      if (static_cast<double>(measured) > kMoreMemory * static_cast<double>(planned)) {
        Fail("memory", text, "leave more room: a smaller batch.micro_samples, recompute, or more ranks; and report it");
      } else {
        Pass("memory", text);
      }
    }
  }

  void MemoryOfHosts() {
    struct Host {
      int64_t planned = 0, available = 0, resident = 0;
      int ranks = 0, fullest = -1;
      int64_t most = 0;
    };
    std::map<std::string, Host> hosts;
    std::map<const Role*, int64_t> planned;
    for (const RoleEstimate& estimate : EstimateMemory(plan_)) planned[estimate.role] = estimate.planned.total();
    for (const auto& rank : facts_.ranks) {
      if (!rank) continue;
      Host& host = hosts[rank->host];
      ++host.ranks;
      host.planned += planned[plan_.RoleOf(rank->rank)];
      host.resident += rank->resident;
      host.available = std::max(host.available, rank->host_available);
      if (rank->resident > host.most) host.most = rank->resident, host.fullest = rank->rank;
    }
    // The host that is nearest to its end.
    const auto tightest = std::max_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
      return static_cast<double>(a.second.planned) * static_cast<double>(std::max<int64_t>(1, b.second.available)) <
             static_cast<double>(b.second.planned) * static_cast<double>(std::max<int64_t>(1, a.second.available));
    });
    const Host& host = tightest->second;
    std::string text = absl::StrCat(
        "on ", tightest->first, ", of ", hosts.size(), hosts.size() == 1 ? " node, " : " nodes the fullest, ",
        Counted(host.ranks, "rank needs ", "ranks need "), GigabytesText(host.planned), " for tensors");
    if (host.resident > 0) {
      absl::StrAppend(&text, "; their processes held ", GigabytesText(host.resident), ", the most rank ", host.fullest,
                      " with ", GigabytesText(host.most));
    }
    if (host.available == 0) return Open("memory", absl::StrCat(text, "; the system does not tell what is free"));
    absl::StrAppend(&text, "; ", GigabytesText(host.available), " were free");
    if (host.planned > host.available)
      return Fail("memory", std::move(text), "fewer ranks on the node, or a node with more memory");
    Pass("memory", std::move(text));
  }

  void Loss() {
    if (!all_ready()) return;
    const std::vector<StepRecord>& steps = facts_.steps;
    const auto wanted = static_cast<size_t>(std::min(kTrialSteps, plan_.budget.steps));
    std::string text;
    bool finite = true;
    for (const StepRecord& step : steps) {
      const bool good = (!step.loss || std::isfinite(*step.loss)) && std::isfinite(step.grad_norm) && !step.skipped;
      finite = finite && good;
      absl::StrAppend(&text, text.empty() ? "" : ", then ", "loss ",
                      step.loss ? absl::StrFormat("%.6g", *step.loss) : "of no position",
                      absl::StrFormat(" and gradient norm %.4g", step.grad_norm), good ? "" : " (skipped)");
    }
    if (steps.size() < wanted) {
      const std::string why = end_.exit_code != 0 ? end_.cause : "metrics.jsonl of the trial has no more";
      return Fail("step", absl::StrCat(steps.size(), " of ", wanted, " steps were done: ", why),
                  MendOf(end_.exit_code));
    }
    // A loss that is not finite is null in its record, and its step is skipped.
    if (!finite) return Fail("loss", std::move(text), MendOf(kExitNumerics));
    Pass("loss", std::move(text));
  }

  // Whether the plan predicts times of the device and the place where the ranks were.
  std::string NoPrediction() const {
    if (end_.on_gpus != (plan_.cluster.gpu != "none")) return "the plan is for another kind of device";
    if (plan_.cluster.gpus_per_node < plan_.world_size && facts_.rounds.ranks_per_node >= plan_.world_size)
      return "the ranks of several nodes were on one machine";
    return "";
  }

  void Time() {
    if (facts_.steps.size() < 2) return;
    const double seconds = facts_.steps[1].step_seconds, predicted = plan_.launch.predicted_step;
    const std::string took = absl::StrCat("step ", facts_.steps[1].step, " took ", DurationText(seconds));
    if (const std::string why = NoPrediction(); !why.empty()) return Open("time", took + "; " + why);
    if (predicted <= 0) {
      return Open("time", took +
                              ", and nothing is predicted: the device is unknown (`plan measure` makes a profile "
                              "of it)");
    }
    const std::string text = absl::StrCat(took, ", predicted ", DurationText(predicted),
                                          absl::StrFormat(" (%+.0f %%)", 100 * (seconds / predicted - 1)));
    if (seconds <= kSlowStep * predicted) return Pass("time", text);
    Fail("time", text,
         "`--trace 2` says which instructions take longer; a profile of this cluster (`plan measure`) tells whether "
         "the prediction is wrong");
  }

  void Links() {
    Plan placed = plan_;
    placed.cluster.gpus_per_node = facts_.rounds.ranks_per_node;
    const std::vector<StepCommunication> steps = StepCommunications(placed);
    if (steps.empty() || !all_ready()) return;
    if (steps.size() != facts_.rounds.list.size())
      return Open("links", "trial/rounds.json, which says what was timed, cannot be read");
    const Rates rates = RatesOf(placed);
    const std::string no_prediction = NoPrediction();
    const bool judged = rates.known() && no_prediction.empty();
    for (size_t i = 0; i < steps.size(); ++i) {
      const CommunicationRound& round = facts_.rounds.list[i];
      double worst = 0;
      std::vector<int> members;
      std::vector<double> groups;
      for (int rank = 0; rank < plan_.world_size; ++rank) {
        const double seconds = facts_.round_seconds[i][static_cast<size_t>(rank)];
        const std::vector<int> group = MembersOf(round, rank, plan_.world_size, facts_.rounds.ranks_per_node);
        if (seconds <= 0 || group.empty() || group.front() != rank) continue;
        groups.push_back(seconds);
        if (seconds > worst) worst = seconds, members = group;
      }
      const std::string what = absl::StrCat(std::string(OpName(round.kind)), " over ", Names(steps[i].groups), ": ",
                                            MessageText(round.bytes), " among ", round.members(), " ranks",
                                            round.nodes > 1 ? absl::StrCat(" of ", round.nodes, " nodes") : "");
      if (groups.empty()) {
        if (end_.exit_code == 0) Open("links", absl::StrCat(what, ": no rank has a time of it"));
        continue;
      }
      std::sort(groups.begin(), groups.end());
      std::set<std::string> hosts;
      for (int rank : members) hosts.insert(HostOf(rank));
      std::string text = absl::StrCat(what, " in ", DurationText(groups[groups.size() / 2]));
      if (groups.size() > 1) {
        absl::StrAppend(&text, "; slowest of ", groups.size(), ": ranks ", RanksText(members), " on ", Names(hosts),
                        " in ", DurationText(worst));
      }
      if (!judged) {
        Open("links", absl::StrCat(text, "; ", no_prediction.empty() ? "nothing is predicted" : no_prediction));
        continue;
      }
      const double predicted = rates.Communication(steps[i].use).seconds;
      absl::StrAppend(&text, ", predicted ", DurationText(predicted));
      constexpr double kNoise = 1e-3;  // seconds: what is shorter is noise of the host
      if (worst <= kSlowLink * predicted + kNoise) {
        Pass("links", std::move(text));
      } else {
        Fail("links", std::move(text),
             absl::StrCat("look at the links of ", Names(hosts),
                          ", and at launch.interface; if all are as slow, measure them (`plan measure`)"));
      }
    }
  }

  const Plan& plan_;
  const TrialFacts& facts_;
  const TrialEnd& end_;
  std::set<std::string> hosts_;
  int ready_ = 0;
  TrialVerdict trial_;
};

}  // namespace

TrialVerdict JudgeTrial(const Plan& plan, const TrialFacts& facts, const TrialEnd& end) {
  return Judge(plan, facts, end).Run();
}

}  // namespace planwright
