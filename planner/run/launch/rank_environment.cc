#include "planner/run/launch/rank_environment.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "planner/wire/connection/proof.h"
#include "planner/wire/records/run_timeout.h"

namespace planwright {

std::string SecretOfLife(std::string_view key, std::string_view life) {
  std::string text = "planwright secret of a life 1 ";
  return absl::BytesToHexString(HmacSha256(key, text.append(life)));
}

absl::StatusOr<World> MakeWorld(const std::string& address, std::string interface, const std::string& key) {
  const absl::StatusOr<std::string> nonce = RandomBytes(16);
  if (!nonce.ok()) return nonce.status();
  const std::string life = absl::BytesToHexString(*nonce);
  std::string secret = SecretOfLife(key, life);
  absl::StatusOr<std::unique_ptr<StoreServer>> store = StoreServer::Start(address, 0, secret);
  if (!store.ok()) return store.status();
  return World{*std::move(store), life, std::move(secret), std::move(interface)};
}

Variables VariablesOf(const World& world) {
  Variables variables = {{"MASTER_ADDR", world.store->address()},
                         {"MASTER_PORT", std::to_string(world.store->port())},
                         {kLifeVariable, world.nonce},
                         {kSecretVariable, world.secret}};
  if (!world.interface.empty()) {
    variables["GLOO_SOCKET_IFNAME"] = world.interface;
    variables["NCCL_SOCKET_IFNAME"] = "=" + world.interface;  // without the sign, also those whose names begin so
  }
  return variables;
}

std::vector<std::string> RankEnvironment(const Variables& shared, const RankNumbers& numbers,
                                         const std::vector<std::string>& inherited) {
  Variables ours = shared;
  ours["RANK"] = std::to_string(numbers.rank);
  ours["WORLD_SIZE"] = std::to_string(numbers.world_size);
  ours["LOCAL_RANK"] = std::to_string(numbers.local_rank);
  ours["LOCAL_WORLD_SIZE"] = std::to_string(numbers.local_size);
  if (numbers.own_cores) ours["PLANWRIGHT_OWN_CORES"] = "1";
  // What Slurm tells the agent, what a launch around this one may have told, and the timeout of an agent's shell: that
  // of the launcher is among the shared variables.
  constexpr std::string_view kDropped[] = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "PLANWRIGHT_OWN_CORES",
                                           kTimeoutVariable};
  std::vector<std::string> environment;
  bool threads_set = ours.contains("OMP_NUM_THREADS");
  for (const std::string& variable : inherited) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    threads_set |= name == "OMP_NUM_THREADS";
    const bool dropped = std::find(std::begin(kDropped), std::end(kDropped), name) != std::end(kDropped);
    if (!ours.contains(name) && !dropped) environment.push_back(variable);
  }
  for (const auto& [name, value] : ours) environment.push_back(name + "=" + value);
  if (!threads_set) environment.push_back("OMP_NUM_THREADS=1");
  return environment;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; ++variable) environment.emplace_back(*variable);
  return environment;
}

}  // namespace planwright
