#include "planner/launch/rank_environment.h"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/rendezvous/interface_address.h"
#include "planner/rendezvous/proof.h"

namespace planwright {
absl::StatusOr<LocalWorld> MakeLocalWorld(int world_size, const std::string& interface) {
  std::string address = "127.0.0.1";
  if (!interface.empty()) {
    absl::StatusOr<std::string> found = InterfaceAddress(interface);
    if (!found.ok()) return absl::InvalidArgumentError(absl::StrCat("launch.interface: ", found.status().message()));
    address = *std::move(found);
  }
  const absl::StatusOr<std::string> nonce = RandomBytes(16);
  if (!nonce.ok()) return nonce.status();
  absl::StatusOr<std::string> secret = MakeSecret();
  if (!secret.ok()) return secret.status();
  absl::StatusOr<std::unique_ptr<StoreServer>> store = StoreServer::Start(address, 0, *secret);
  if (!store.ok()) return store.status();
  return LocalWorld{world_size, *std::move(store), absl::BytesToHexString(*nonce), *std::move(secret), interface};
}

std::map<std::string, std::string, std::less<>> VariablesOf(const LocalWorld& world) {
  std::map<std::string, std::string, std::less<>> variables = {{"MASTER_ADDR", world.store->address()},
                                                               {"MASTER_PORT", std::to_string(world.store->port())},
                                                               {"PLANWRIGHT_NONCE", world.nonce},
                                                               {"PLANWRIGHT_SECRET", world.secret}};
  if (!world.interface.empty()) {
    variables["GLOO_SOCKET_IFNAME"] = world.interface;
    variables["NCCL_SOCKET_IFNAME"] = "=" + world.interface;  // without the sign, also those whose names begin so
  }
  return variables;
}

std::vector<std::string> RankEnvironment(const LocalWorld& world, int rank, const std::vector<std::string>& inherited) {
  std::map<std::string, std::string, std::less<>> ours = VariablesOf(world);
  ours["RANK"] = ours["LOCAL_RANK"] = std::to_string(rank);
  ours["WORLD_SIZE"] = ours["LOCAL_WORLD_SIZE"] = std::to_string(world.world_size);
  std::vector<std::string> environment;
  bool threads_set = false;
  for (const std::string& variable : inherited) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    threads_set |= name == "OMP_NUM_THREADS";
    if (!ours.contains(name)) environment.push_back(variable);
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
