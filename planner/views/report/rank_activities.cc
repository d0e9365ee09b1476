#include "planner/views/report/rank_activities.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planwright {
namespace {

using What = RankActivity::What;

std::optional<double> SecondsSince(const RecordedInstruction& at, absl::Time now) {
  if (at.wall <= 0) return std::nullopt;
  return std::max(0.0, absl::ToDoubleSeconds(now - absl::FromUnixNanos(at.wall)));
}

struct Activity {
  What what = What::kSilent;
  std::string where;
  std::optional<double> seconds;
};

Activity ActivityOf(const RankReport& rank, absl::Time now) {
  if (!rank.position) return {What::kSilent, "", std::nullopt};
  const RankPosition& position = *rank.position;
  const auto at = [&](What what, const std::optional<RecordedInstruction>& instruction) {
    if (!instruction) return Activity{what, "", std::nullopt};
    return Activity{what, PathText(*instruction), SecondsSince(*instruction, now)};
  };
  if (position.state == RecorderState::kFailed) return {What::kFailed, position.message, std::nullopt};
  if (position.state == RecorderState::kDone) return {What::kDone, "", std::nullopt};
  if (position.begun == 0) return {What::kStarting, "", std::nullopt};
  if (position.done >= position.begun) return at(What::kBetween, position.last);
  if (!position.undone) return at(What::kUnknown, position.last);
  switch (position.undone->state) {
    case RecorderState::kWaiting: return at(What::kWaits, position.undone);
    case RecorderState::kStoring: return at(What::kStores, position.undone);
    default: return at(What::kComputes, position.undone);
  }
}

}  // namespace

const char* WhatText(What what) {
  switch (what) {
    case What::kFailed: return "failed";
    case What::kComputes: return "computes";
    case What::kStores: return "saves or loads";
    case What::kWaits: return "communicates";
    case What::kBetween: return "has done";
    case What::kUnknown: return "device is far behind";
    case What::kStarting: return "starts";
    case What::kSilent: return "has noted nothing";
    case What::kDone: return "is done";
  }
  return "";
}

std::vector<RankActivity> FoldRanks(const std::vector<RankReport>& ranks, absl::Time now) {
  std::map<std::pair<What, std::string>, RankActivity> folded;
  for (const RankReport& rank : ranks) {
    const Activity activity = ActivityOf(rank, now);
    RankActivity& of = folded[{activity.what, activity.where}];
    of.what = activity.what;
    of.where = activity.where;
    of.ranks.push_back(rank.rank);
    if (!activity.seconds) continue;
    of.least = std::min(of.least.value_or(*activity.seconds), *activity.seconds);
    of.most = std::max(of.most.value_or(*activity.seconds), *activity.seconds);
  }
  std::vector<RankActivity> activities;
  for (auto& [key, activity] : folded) activities.push_back(std::move(activity));
  std::stable_sort(activities.begin(), activities.end(), [](const RankActivity& a, const RankActivity& b) {
    return std::pair(a.what, -a.most.value_or(0)) < std::pair(b.what, -b.most.value_or(0));
  });
  return activities;
}

std::optional<SlowestRank> FindSlowest(const std::vector<RankReport>& ranks, absl::Time now) {
  std::optional<SlowestRank> slowest;
  int waiting = 0;
  for (const RankReport& rank : ranks) {
    const Activity activity = ActivityOf(rank, now);
    waiting += activity.what == What::kWaits;
    const bool needs_no_other = activity.what == What::kComputes || activity.what == What::kStores;
    if (!needs_no_other || !activity.seconds || (slowest && *activity.seconds <= slowest->seconds)) continue;
    slowest = {rank.rank, *activity.seconds, 0, activity.where};
  }
  if (!slowest || waiting == 0) return std::nullopt;
  slowest->waiting = waiting;
  return slowest;
}

}  // namespace planwright
