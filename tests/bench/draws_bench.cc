// What the first weights cost: nanoseconds for each weight, by dtype and number of threads. A storage of experts at the
// width of the 20-layer model, whole, and cut so that each row is a run of elements. Run by `./dev bench draws`.
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include "executor/optimizer/philox_draws.h"
#include "planner/base/threads/threads.h"
#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

// Experts whose second dim is cut `parts` ways, so that each row is a run of elements.
Plan ExpertPlan(const std::string& precision, int64_t experts, int parts) {
  constexpr int64_t kRows = 2688, kColumns = 1856;
  Plan plan;
  plan.precision = precision;
  plan.world_size = parts;
  Module module{.name = "m"};
  module.grid.tp = parts;
  module.grid.expert_tp = parts;
  module.parameters = {{.name = "m.{expert}.down",
                        .shape = {kRows, kColumns},
                        .experts = experts,
                        .shard_dim = 1,
                        .init = {Init::Kind::kNormal, 0.02, 0}}};
  module.storages = {
      {.frame = "m.layers.0", .slot = "down", .shape = {experts, kRows, kColumns / parts}, .parameters = {0}}};
  plan.modules = {module};
  return plan;
}

struct Cost {
  double wall = 0, core = 0;  // seconds; core: summed over all threads
};

Cost CostOf(const Plan& plan, int threads) {
  ModuleState state(plan, plan.modules[0], 0, at::kCPU);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t used = std::clock();
  InitializeParameters(plan, 0, PhiloxDraws(1234), threads, state);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC};
}

int Main() {
  at::set_num_threads(1);  // as in a rank
  const int most = ThreadsOfRank();
  std::printf("ns a weight  threads  wall    of one core\n");
  for (const char* precision : {"bf16", "fp32"}) {
    for (const int parts : {1, 2}) {
      for (int threads = 1;; threads = std::min(2 * threads, most)) {
        // Half a second or so for each thread.
        const int64_t experts = (precision == std::string("bf16") ? 16 : 2) * std::min(threads, 8);
        const Plan plan = ExpertPlan(precision, experts, parts);
        const auto weights = static_cast<double>(ElementsOf(plan.modules[0].storages[0].shape));
        const Cost first = CostOf(plan, threads), second = CostOf(plan, threads);
        std::printf("%s, %-5s  %6d  %7.2f  %7.2f\n", precision, parts == 1 ? "whole" : "cut", threads,
                    std::min(first.wall, second.wall) * 1e9 / weights,
                    std::min(first.core, second.core) * 1e9 / weights);
        if (threads == most) break;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace planwright::executor

int main() { return planwright::executor::Main(); }
