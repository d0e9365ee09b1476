#include "planner/run/outcome/sum_traces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/link/linked_program.h"
#include "planner/predict/simulate/replayed_step.h"

namespace planwright {
namespace {

constexpr int kMostKept = 16;  // ranks of one machine, whose traces are held at once: some 2 MB for each of their steps

// By part, then by kind of instruction.
using RowsByPart = std::map<std::string, std::map<std::string, ProfileRow>>;

struct RankSums {
  RowsByPart rows;
  double step = 0, overlap = 0, communication = 0;
};

RankSums SumsOf(const Trace& trace) {
  const double steps = static_cast<double>(trace.steps.count());
  const auto milliseconds = [&](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / (1e6 * steps); };
  std::vector<const TraceInstruction*> by_begin;
  for (const TraceInstruction& instruction : trace.instructions) by_begin.push_back(&instruction);
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [](const TraceInstruction* a, const TraceInstruction* b) { return a->begin < b->begin; });
  RankSums sums;
  if (by_begin.empty()) return sums;
  int64_t reached = by_begin.front()->begin, overlap = 0;  // reached: the last end so far, on any stream
  for (const TraceInstruction* instruction : by_begin) {
    ProfileRow& row = sums.rows[instruction->part][instruction->kind];
    row.times += 1 / steps;
    row.device += milliseconds(instruction->end - instruction->begin);
    row.idle_before += milliseconds(std::max<int64_t>(0, instruction->begin - reached));
    row.host += milliseconds(instruction->launch_end - instruction->launch_begin - instruction->waited);
    if (instruction->op_class == "communication")
      sums.communication += milliseconds(instruction->end - instruction->begin);
    overlap += std::max<int64_t>(0, std::min(reached, instruction->end) - instruction->begin);
    reached = std::max(reached, instruction->end);
  }
  sums.step = milliseconds(reached - by_begin.front()->begin), sums.overlap = milliseconds(overlap);
  return sums;
}

// Adds what one of `ranks` ranks spent.
void AddRank(const ProfileRow& of_rank, double ranks, ProfileRow& row) {
  row.times += of_rank.times / ranks;
  row.device += of_rank.device / ranks;
  row.slowest_rank = std::max(row.slowest_rank, of_rank.device);
  row.idle_before += of_rank.idle_before / ranks;
  row.host += of_rank.host / ranks;
}

void AddRow(const ProfileRow& row, ProfileRow& sum) {
  sum.times += row.times, sum.device += row.device, sum.idle_before += row.idle_before, sum.host += row.host;
}

RoleProfile ProfileOf(const std::string& role, const std::map<int, RankSums>& ranks) {
  RoleProfile profile{.role = role};
  const double count = static_cast<double>(ranks.size());
  RowsByPart rows;
  std::map<std::string, ProfileRow> parts;
  for (const auto& [rank, sums] : ranks) {
    profile.ranks.push_back(rank);
    profile.step += sums.step / count, profile.overlap += sums.overlap / count;
    profile.communication += sums.communication / count;
    profile.slowest_step = std::max(profile.slowest_step, sums.step);
    double instructions = 0;
    for (const auto& [part, kinds] : sums.rows) {
      ProfileRow whole;
      for (const auto& [kind, row] : kinds) {
        AddRank(row, count, rows[part][kind]);
        AddRow(row, whole);
      }
      AddRank(whole, count, parts[part]);
      instructions += whole.device;
      profile.idle += whole.idle_before / count;
    }
    profile.instructions += instructions / count;
    profile.slowest_instructions = std::max(profile.slowest_instructions, instructions);
  }
  const auto longer = [](const ProfileRow& a, const ProfileRow& b) { return a.device > b.device; };
  for (const auto& [name, whole] : parts) {
    ProfilePart& part = profile.parts.emplace_back(ProfilePart{whole, {}});
    part.whole.name = name;
    for (const auto& [kind, row] : rows[name]) part.kinds.emplace_back(row).name = kind;
    std::stable_sort(part.kinds.begin(), part.kinds.end(), longer);
  }
  std::stable_sort(profile.parts.begin(), profile.parts.end(),
                   [&](const ProfilePart& a, const ProfilePart& b) { return longer(a.whole, b.whole); });
  return profile;
}

// The predicted rows of a role in milliseconds: the mean over its ranks, which may be of several classes. Adds up those
// that communicate, and their waiting.
RowsByPart PredictedRows(const StepTime& time, const std::string& role, double& communication, double& waiting) {
  RowsByPart rows;
  double ranks = 0;
  for (const RoleTime& one : time.roles) ranks += one.role->name == role ? static_cast<double>(one.count()) : 0;
  for (const RoleTime& one : time.roles) {
    if (one.role->name != role) continue;
    const double weight = static_cast<double>(one.count()) / ranks;
    for (const OperationTime& operation : one.operations) {
      std::optional<double>& predicted = rows[operation.part][operation.kind].predicted;
      const double milliseconds = weight * 1e3 * operation.seconds;
      predicted = predicted.value_or(0) + milliseconds;
      if (operation.communication) communication += milliseconds;
      waiting += weight * 1e3 * operation.waited;
    }
  }
  return rows;
}

// How long each rank waited in its communications for the member that came last, in milliseconds of a step. Nothing
// where ranks have no common clock, or where the traces are not of this plan.
std::optional<std::vector<double>> WaitingOf(const Plan& plan, const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    if (trace.host != traces.front().host) return std::nullopt;
  }
  const RankPrograms ranks(plan);
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    const LinkedProgram::Range entries_of_step = ranks.programs()[rank]->step();
    const size_t entries = entries_of_step.end - entries_of_step.first;
    if (entries == 0 || traces[rank].instructions.size() != entries * static_cast<size_t>(traces[rank].steps.count()))
      return std::nullopt;
  }
  const StepRange& steps = traces.front().steps;
  std::vector<double> waiting(traces.size(), 0);
  for (int64_t step = steps.first; step <= steps.last; ++step) {
    const ReplayedStep replayed = ReplayOf(ranks, traces, step, HostModelOf(plan));
    for (size_t rank = 0; rank < waiting.size(); ++rank)
      waiting[rank] += 1e3 * replayed.waiting[rank] / static_cast<double>(steps.count());
  }
  return waiting;
}

// Every instruction of a step is in a trace, also one that is predicted to take no time, so both have the same rows.
void AddPrediction(const StepTime& time, RoleProfile& role) {
  if (!time.seconds) return;
  const RowsByPart rows =
      PredictedRows(time, role.role, role.predicted_communication.emplace(0), role.predicted_waiting.emplace(0));
  role.predicted_step = 1e3 * time.length;
  for (ProfilePart& part : role.parts) {
    const auto predicted = rows.find(part.whole.name);
    if (predicted == rows.end()) continue;
    for (ProfileRow& row : part.kinds) {
      const auto found = predicted->second.find(row.name);
      if (found == predicted->second.end()) continue;
      row.predicted = found->second.predicted;
      part.whole.predicted = part.whole.predicted.value_or(0) + *row.predicted;
    }
  }
}

}  // namespace

absl::StatusOr<RunProfile> ReadRunProfile(const Plan& plan, const StepTime& time, const std::string& run_dir,
                                          const std::function<bool()>& stop) {
  RunProfile profile;
  std::map<std::string, std::map<int, RankSums>> roles;
  std::vector<Trace> kept;  // all of them, if they are few
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (stop && stop()) return absl::CancelledError("the sum of traces was ended");
    const std::string path = TracePath(run_dir, rank);
    const absl::StatusOr<std::string> text = ReadWholeFile(path, kTraceJson.bytes);
    if (!text.ok()) return text.status();
    absl::StatusOr<Trace> trace = ReadTrace(*text);
    if (!trace.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", trace.status().message()));
    profile.steps = trace->steps;
    roles[trace->role][rank] = SumsOf(*trace);
    if (plan.world_size <= kMostKept) kept.push_back(*std::move(trace));
  }
  const std::optional<std::vector<double>> waiting = kept.empty() ? std::nullopt : WaitingOf(plan, kept);
  for (const auto& [role, ranks] : roles) {
    profile.roles.push_back(ProfileOf(role, ranks));
    AddPrediction(time, profile.roles.back());
    if (!waiting) continue;
    double& of_role = profile.roles.back().waiting.emplace(0);
    for (const auto& [rank, sums] : ranks)
      of_role += (*waiting)[static_cast<size_t>(rank)] / static_cast<double>(ranks.size());
  }
  std::sort(profile.roles.begin(), profile.roles.end(),
            [](const RoleProfile& a, const RoleProfile& b) { return a.ranks.front() < b.ranks.front(); });
  return profile;
}

}  // namespace planwright
