#include "tests/verify/v3_progress/random_programs.h"

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;

class RandomPlan {
 public:
  explicit RandomPlan(uint64_t seed) : random_(seed) {}

  Plan Make() {
    plan_.groups.push_back({.name = "world", .short_name = "world", .streams = Streams()});
    const int modules = Pick(2) + 1;
    for (int i = 0; i < modules; ++i) AddModule(i == 0 ? "a" : "b");
    if (modules == 2) AddBridge();
    for (const auto& [name, list] : kRoleLists) {
      list_ = list;
      for (Role& role : plan_.roles) (role.*list).push_back(Source());
      const int meetings = list == &Role::step ? 40 : Pick(4);
      for (int i = 0; i < meetings; ++i) AddMeeting(i);
    }
    return std::move(plan_);
  }

 private:
  int Pick(int count) { return static_cast<int>(random_() % count); }

  static ValueType Type(int64_t size) { return {DType::kFp32, {size, int64_t{8}}, {}, std::nullopt, false}; }

  // Streams of a group: the main stream, and for half of the groups another one.
  vector<string> Streams() { return Pick(2) ? vector<string>{""} : vector<string>{"", Pick(2) ? "reduce" : "gather"}; }
  const string& StreamOf(const Group& group) {
    return group.streams[static_cast<size_t>(Pick(static_cast<int>(group.streams.size())))];
  }

  // An instruction that makes the values that exchanges send.
  static Instruction Source() {
    Instruction source{.kind = OpKind::kReadTokens};
    for (int64_t size : {4, 5}) source.outputs.push_back({absl::StrCat("v", size), Type(size)});
    return source;
  }

  void AddModule(const string& name) {
    Module& module = plan_.modules.emplace_back();
    module.name = name;
    Grid& grid = module.grid;
    grid.first_rank = plan_.world_size;
    grid.tp = Pick(3) + 1, grid.dp = Pick(3) + 1, grid.pp = Pick(3) + 1;
    grid.ep = grid.tp, grid.expert_dp = grid.dp;
    if (Pick(2) == 0) grid.ep = grid.tp * grid.dp, grid.expert_dp = 1;
    plan_.world_size += grid.ranks();
    const auto group = [&](const char* short_name, View view, vector<Axis> axes) {
      plan_.groups.push_back({.name = name + "." + short_name,
                              .short_name = short_name,
                              .module = name,
                              .view = view,
                              .axes = axes,
                              .streams = Streams()});
    };
    group("tp", View::kDense, {Axis::kTp});
    group("pp", View::kDense, {Axis::kPp});
    group("dp", View::kDense, {Axis::kDp});
    group("ep", View::kExpert, {Axis::kEp});
    const bool split = Pick(2) == 0;
    for (int stage = 0; stage < grid.pp; ++stage) {
      vector<int> leaders, siblings;
      for (int rank = 0; rank < grid.tp * grid.dp; ++rank) {
        (split && rank % grid.tp > 0 ? siblings : leaders)
            .push_back(grid.first_rank + stage * grid.tp * grid.dp + rank);
      }
      plan_.roles.push_back({.name = absl::StrCat(name, ".s", stage), .modules = {name}, .ranks = Compress(leaders)});
      if (siblings.empty()) continue;
      plan_.roles.push_back(
          {.name = absl::StrCat(name, ".s", stage, ".sibling"), .modules = {name}, .ranks = Compress(siblings)});
    }
  }

  // A bridge with rows between random ranks of the last stage of `a` and random ranks of the first stage of `b`.
  void AddBridge() {
    const Grid& from = plan_.modules[0].grid;
    const Grid& to = plan_.modules[1].grid;
    Bridge bridge = {.name = "bridge.a.b", .from = "a", .to = "b", .kind = "uneven"};
    std::set<int> ranks;
    const int rows = Pick(6) + 1;
    for (int row = 0; row < rows; ++row) {
      const int source = from.first_rank + from.tp * from.dp * (from.pp - 1) + Pick(from.tp * from.dp);
      const int destination = to.first_rank + Pick(to.tp * to.dp);
      bridge.forward.push_back({source, destination, row, row + 1});
      bridge.backward.push_back({destination, source, row, row + 1});
      ranks.insert({source, destination});
    }
    plan_.bridges.push_back(bridge);
    plan_.groups.push_back(
        {.name = bridge.name, .short_name = "bridge", .ranks = {ranks.begin(), ranks.end()}, .streams = Streams()});
  }

  int RoleAt(int rank) const { return static_cast<int>(plan_.RoleOf(rank) - plan_.roles.data()); }

  // `role` and all roles that a chain of subgroups joins to it: all of them must have the same collectives over the
  // group.
  std::set<int> Joined(const Group& group, int role) const {
    std::set<int> roles = {role};
    for (size_t before = 0; before != roles.size();) {
      before = roles.size();
      for (const vector<int>& members : MembersOf(plan_, group)) {
        std::set<int> here;
        for (int member : members) here.insert(RoleAt(member));
        if (std::any_of(here.begin(), here.end(), [&](int r) { return roles.contains(r); }))
          roles.insert(here.begin(), here.end());
      }
    }
    return roles;
  }

  void AddMeeting(int number) {
    const int kind = Pick(10);
    if (kind < 4) return AddCollective();
    if (kind < 8) return AddStageExchange(number);
    if (!plan_.bridges.empty()) AddBridgeExchange(number);
  }

  void AddCollective() {
    const int role = Pick(static_cast<int>(plan_.roles.size()));
    vector<const Group*> groups;
    for (const Group& group : plan_.groups) {
      if (group.name == "world" || group.module == plan_.roles[role].modules.front()) groups.push_back(&group);
    }
    const Group& group = *groups[Pick(static_cast<int>(groups.size()))];
    Instruction made{.kind = Pick(2) ? OpKind::kAllReduce : OpKind::kAllGather};
    made.outputs = {{"r", Type(Pick(3) + 1)}};
    if (made.kind == OpKind::kAllReduce) made.attributes["reduce"] = string("sum");
    if (made.kind == OpKind::kAllGather) made.attributes["dim"] = int64_t{0};
    made.group = group.name;
    made.stream = StreamOf(group);
    for (int other : Joined(group, role)) (plan_.roles[other].*list_).push_back(made);
  }

  // Adds a part to the role's list: now and then to the exchange before it, else in an exchange of its own.
  void AddPart(Role& role, ExchangePart part, int64_t size, const string& stream) {
    vector<Instruction>& list = role.*list_;
    const string received = absl::StrCat("x", list.size(), ".", Pick(1 << 30));
    if (list.back().kind != OpKind::kExchange || list.back().stream != stream || Pick(2) == 0) {
      list.push_back({.kind = OpKind::kExchange, .stream = stream});
    }
    if (!part.send) list.back().outputs.push_back({received, Type(size)});
    part.value = part.send ? absl::StrCat("v", size) : received;
    list.back().parts.push_back(part);
  }

  void AddStageExchange(int number) {
    const Module& module = plan_.modules[Pick(static_cast<int>(plan_.modules.size()))];
    const Grid& grid = module.grid;
    if (grid.pp == 1) return;
    const bool backward = Pick(2) == 0;
    const int from = Pick(grid.pp - 1) + (backward ? 1 : 0), shift = backward ? -1 : 1;
    const int64_t size = 4 + number % 2;
    const int width = grid.tp * grid.dp;
    const string stream = StreamOf(*plan_.FindGroup(module.name + ".pp"));
    for (const bool send : {true, false}) {
      const int stage = send ? from : from + shift;
      std::set<int> roles;
      for (int i = 0; i < width; ++i) roles.insert(RoleAt(grid.first_rank + stage * width + i));
      for (int role : roles) {
        AddPart(plan_.roles[role],
                {.backward = backward, .send = send, .group = module.name + ".pp", .shift = send ? shift : -shift},
                size, stream);
      }
    }
  }

  void AddBridgeExchange(int number) {
    const Bridge& bridge = plan_.bridges.front();
    const string stream = StreamOf(*plan_.FindGroup(bridge.name));
    const bool backward = Pick(2) == 0;
    std::set<int> senders, receivers;
    for (const Transfer& row : backward ? bridge.backward : bridge.forward) {
      senders.insert(RoleAt(row.from_rank));
      receivers.insert(RoleAt(row.to_rank));
    }
    for (int role : senders)
      AddPart(plan_.roles[role], {.bridge = bridge.name, .backward = backward, .send = true}, 4 + number % 2, stream);
    for (int role : receivers)
      AddPart(plan_.roles[role], {.bridge = bridge.name, .backward = backward, .send = false}, 4 + number % 2, stream);
  }

  std::mt19937_64 random_;
  Plan plan_;
  vector<Instruction> Role::*list_ = nullptr;  // the list that is filled now
};

}  // namespace

Plan RandomPrograms(uint64_t seed) { return RandomPlan(seed).Make(); }

}  // namespace planwright::testing
