#include "planner/plan/plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "planner/plan/precision.h"

namespace planwright {

const char kToolVersion[] = "0.2.0";

namespace {

template <typename List>
auto FindByName(const List& list, std::string_view name) -> const typename List::value_type* {
  auto it = std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  return it == list.end() ? nullptr : &*it;
}

// In the order of the enumerations.
constexpr std::string_view kInitKindNames[] = {"zeros", "ones", "normal", "uniform", "log_uniform", "dt_bias"};
constexpr std::string_view kTpGradientNames[] = {"sharded", "replicated", "partial"};

template <typename Enum, size_t N>
std::optional<Enum> EnumFromName(const std::string_view (&names)[N], std::string_view name) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<Enum>(found - std::begin(names)));
}

}  // namespace

std::string_view InitKindName(Init::Kind kind) { return kInitKindNames[static_cast<int>(kind)]; }

std::optional<Init::Kind> InitKindFromName(std::string_view name) {
  return EnumFromName<Init::Kind>(kInitKindNames, name);
}

std::string_view Storage::SlotIn(std::string_view frame_of_call) const {
  if (frame_of_call == frame) return slot;
  for (const SharedSlot& each : shared) {
    if (each.frame == frame_of_call) return each.slot;
  }
  return "";
}

std::string_view TpGradientName(TpGradient value) { return kTpGradientNames[static_cast<int>(value)]; }

std::optional<TpGradient> TpGradientFromName(std::string_view name) {
  return EnumFromName<TpGradient>(kTpGradientNames, name);
}

const Module* Plan::FindModule(std::string_view name) const { return FindByName(modules, name); }
const Group* Plan::FindGroup(std::string_view name) const { return FindByName(groups, name); }
const EncoderData* DataPlan::FindEncoder(std::string_view module) const {
  const auto found = std::find_if(encoders.begin(), encoders.end(),
                                  [&](const EncoderData& encoder) { return encoder.module == module; });
  return found == encoders.end() ? nullptr : &*found;
}

const Bridge* Plan::FindBridge(std::string_view name) const { return FindByName(bridges, name); }
const Block* Plan::FindBlock(std::string_view name) const { return FindByName(blocks, name); }

const Accumulator* Plan::FindAccumulator(std::string_view name) const { return FindByName(accumulators, name); }
int64_t EvaluationPlan::parts() const {
  int64_t parts = 0;
  for (const EvaluationSet& set : sets) parts += set.parts();
  return parts;
}

int64_t EvaluationPlan::rounds() const {
  int64_t rounds = 0;
  for (const EvaluationSet& set : sets) rounds += set.rounds;
  return rounds;
}

DType Plan::dtype() const { return DTypeOf(precision); }
DType Plan::master() const { return MasterOf(dtype()); }

int64_t Module::size(std::string_view constant) const {
  const auto found = constants.find(constant);
  const int64_t* value = found == constants.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : 0;
}

double Module::real(std::string_view constant) const {
  const auto found = constants.find(constant);
  if (found == constants.end()) return 0;
  if (const double* value = std::get_if<double>(&found->second)) return *value;
  return static_cast<double>(size(constant));
}

int64_t Module::expert_layers() const {
  return std::count_if(layers.begin(), layers.end(), [](const LayerSummary& layer) { return layer.expert_row >= 0; });
}

// A plan has few roles and ranges, however many ranks it has: a search is fast enough.
const Role* Plan::RoleOf(int rank) const {
  for (const Role& role : roles) {
    for (const RankRange& range : role.ranks) {
      if (Contains(range, rank)) return &role;
    }
  }
  return nullptr;
}

bool Contains(const RankRange& range, int rank) {
  if (rank < range.first) return false;
  const int offset = rank - range.first;
  return offset % range.stride == 0 && offset / range.stride < range.count;
}

std::vector<int> Expand(const std::vector<RankRange>& ranges) {
  std::vector<int> ranks;
  for (const RankRange& range : ranges) {
    for (int i = 0; i < range.count; ++i) ranks.push_back(range.first + i * range.stride);
  }
  return ranks;
}

// Greedy: two ranks always make a range, so {0, 1, 5} becomes 0..1 and 5, and {0, 5, 6} becomes 0,5 and 6.
std::vector<RankRange> Compress(const std::vector<int>& ranks) {
  std::vector<RankRange> ranges;
  for (int rank : ranks) {
    if (!ranges.empty()) {
      RankRange& last = ranges.back();
      if (last.count == 1) {
        last.stride = rank - last.first;
        last.count = 2;
        continue;
      }
      if (rank == last.first + last.count * last.stride) {
        ++last.count;
        continue;
      }
    }
    ranges.push_back({rank, 1, 1});
  }
  return ranges;
}

std::vector<std::vector<int>> MembersOf(const Plan& plan, const Group& group) {
  if (group.name == "world") {
    std::vector<int> world(plan.world_size);
    std::iota(world.begin(), world.end(), 0);
    return {std::move(world)};
  }
  if (group.module.empty()) return {group.ranks};
  return GroupsOver(plan.FindModule(group.module)->grid, group.view, group.axes);
}

// The first `more` lanes have one sample more, so lane i begins min(i, more) samples later than i equal shares.
LaneSamples SamplesOfLane(int64_t samples, int lanes, int lane) {
  const int64_t share = samples / lanes, more = samples % lanes;
  const int64_t first = lane * share + std::min<int64_t>(lane, more);
  return {first, first + share + (lane < more ? 1 : 0)};
}

}  // namespace planwright
