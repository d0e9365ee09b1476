#include "executor/communication/rendezvous.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "executor/communication/failure.h"
#include "executor/communication/resolve.h"
#include "executor/communication/run_store.h"
#include "planner/wire/connection/socket_address.h"
#include "planner/wire/records/run_timeout.h"
#include "planner/wire/rendezvous/interface_address.h"
#include "planner/wire/rendezvous/store_server.h"

namespace planwright::executor {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

// The value of the usual variable and of Slurm's (null: there is none), which must agree if both are set.
absl::StatusOr<int> Number(const char* name, const char* slurm_name) {
  std::optional<int> result;
  std::string from;
  // Under Slurm a launcher of another kind may set the usual variables too. If both are set they must agree, or this
  // rank would pass for another.
  for (const char* candidate : {name, slurm_name}) {
    const std::optional<std::string> text = candidate == nullptr ? std::nullopt : Variable(candidate);
    if (!text) continue;
    int value = 0;
    if (!absl::SimpleAtoi(*text, &value) || value < 0 || std::to_string(value) != *text) {
      return absl::InvalidArgumentError(absl::StrCat(candidate, "='", *text, "' is not a number of 0 or more"));
    }
    if (result && *result != value) {
      return absl::InvalidArgumentError(absl::StrCat(from, "=", *result, " but ", candidate, "=", value));
    }
    result = value;
    from = candidate;
  }
  if (!result) {
    const std::string missing =
        slurm_name ? absl::StrCat("neither ", name, " nor ", slurm_name, " is set") : absl::StrCat(name, " is not set");
    return absl::InvalidArgumentError(absl::StrCat(missing, "; `plan launch` sets ", name));
  }
  return *result;
}

// How long a rank tries to reach what should be there already: a host that has a name, the store of a launcher.
std::chrono::milliseconds Soon(const Environment& environment) {
  return std::min<std::chrono::milliseconds>(environment.timeout, std::chrono::seconds(20));
}

// Rank 0 may start late, so that the others wait for the store that it serves.
std::chrono::milliseconds StorePatience(const Environment& environment) {
  return environment.store_host == StoreHost::kLauncher ? Soon(environment) : environment.timeout;
}

absl::StatusOr<Endpoint> EndpointOf(const Environment& environment) {
  absl::StatusOr<std::vector<std::string>> addresses = Resolve(environment.address, Soon(environment));
  if (!addresses.ok()) return absl::UnavailableError(absl::StrCat("MASTER_ADDR: ", addresses.status().message()));
  return Endpoint{environment.address, *std::move(addresses), environment.port};
}

absl::StatusOr<c10::intrusive_ptr<RunStore>> Connect(const Environment& environment) {
  const absl::StatusOr<Endpoint> endpoint = EndpointOf(environment);
  if (!endpoint.ok()) return endpoint.status();
  return RunStore::Connect(*endpoint, environment.secret, StorePatience(environment), environment.timeout);
}

// Rank 0 serves as long as its process lives: other ranks may still ask when it has nothing more to do.
absl::Status Serve(const Environment& environment, int port, int& served_port) {
  const absl::StatusOr<Endpoint> endpoint = EndpointOf(environment);
  if (!endpoint.ok()) return endpoint.status();
  const bool named = !SocketAddress::Parse(environment.address, 0).ok() && environment.address != "localhost";
  absl::Status last;
  for (const std::string& address : endpoint->addresses) {
    if (named && address.rfind("127.", 0) == 0 && environment.local_world_size > 0 &&
        environment.local_world_size < environment.world_size) {
      return absl::UnavailableError(absl::StrCat("MASTER_ADDR=", environment.address, " is ", address,
                                                 " on its own machine, where other machines cannot reach it; give the "
                                                 "address that they know"));
    }
    absl::StatusOr<std::unique_ptr<StoreServer>> started = StoreServer::Start(address, port, environment.secret);
    last = started.status();
    if (!started.ok()) continue;
    served_port = (*started)->port();
    started->release();
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(last.message(), "; MASTER_ADDR must be of the machine of rank 0, and MASTER_PORT free there"));
}

// torchrun's agents have a store of their own at MASTER_PORT. Rank 0 serves at another port, which the others learn
// there. All attempts of an agent to run the ranks have one store.
absl::Status MeetAtAgent(Environment& environment) {
  const absl::StatusOr<Endpoint> agent = EndpointOf(environment);
  if (!agent.ok()) return agent.status();
  const absl::StatusOr<std::string> address = WaitUntilReachable(*agent, Soon(environment));
  if (!address.ok()) return absl::UnavailableError(absl::StrCat("the store of torchrun: ", address.status().message()));
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(environment.port);
    options.waitWorkers = false;
    options.timeout = environment.timeout;
    c10d::TCPStore store(*address, options);
    const std::string key = absl::StrCat("planwright/", environment.nonce, "/",
                                         Variable("TORCHELASTIC_RESTART_COUNT").value_or("0"), "/port");
    if (environment.rank == 0) {
      if (absl::Status served = Serve(environment, 0, environment.port); !served.ok()) return served;
      store.set(key, StoreValue(std::to_string(environment.port)));
    } else if (const std::string port = store.get_to_str(key); !absl::SimpleAtoi(port, &environment.port)) {
      return absl::UnavailableError(absl::StrCat("rank 0 tells no port through torchrun, but '", port, "'"));
    }
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("the store of torchrun at ", agent->text(),
                                               " does not say where rank 0 serves: ", FirstLineOf(error)));
  }
}

}  // namespace

absl::StatusOr<Environment> ReadEnvironment() {
  Environment environment;
  absl::StatusOr<int> rank = Number("RANK", "SLURM_PROCID");
  absl::StatusOr<int> world = Number("WORLD_SIZE", "SLURM_NTASKS");
  absl::StatusOr<int> local = Number("LOCAL_RANK", "SLURM_LOCALID");
  absl::StatusOr<int> port = Number("MASTER_PORT", nullptr);
  for (const absl::StatusOr<int>* number : {&rank, &world, &local, &port}) {
    if (!number->ok()) return number->status();
  }
  if (*rank >= *world)
    return absl::InvalidArgumentError(absl::StrCat("rank ", *rank, " is not below the world size ", *world));
  environment.rank = *rank, environment.world_size = *world, environment.local_rank = *local, environment.port = *port;
  const std::optional<std::string> address = Variable("MASTER_ADDR");
  if (!address || address->empty()) return absl::InvalidArgumentError("MASTER_ADDR is not set");
  environment.address = *address;
  if (*port < 1 || *port > 65535)
    return absl::InvalidArgumentError(absl::StrCat("MASTER_PORT=", *port, " is not from 1 to 65535"));
  environment.nonce = Variable("PLANWRIGHT_NONCE").value_or(Variable("TORCHELASTIC_RUN_ID").value_or("none"));
  if (const std::optional<std::string> secret = Variable("PLANWRIGHT_SECRET")) {
    environment.store_host = StoreHost::kLauncher;
    environment.secret = *secret;
  } else {
    if (Variable("TORCHELASTIC_USE_AGENT_STORE") == "True") environment.store_host = StoreHost::kTorchrun;
    environment.secret = "planwright, without a secret: " + environment.nonce;
  }
  if (Variable("LOCAL_WORLD_SIZE")) {
    absl::StatusOr<int> local_world = Number("LOCAL_WORLD_SIZE", nullptr);
    if (!local_world.ok()) return local_world.status();
    environment.local_world_size = *local_world;
  }
  // The user knows better: machines often have several networks.
  if (const std::optional<std::string> interface = Variable("GLOO_SOCKET_IFNAME")) {
    absl::StatusOr<std::string> own = InterfaceAddress(*interface);
    if (!own.ok()) return absl::InvalidArgumentError(absl::StrCat("GLOO_SOCKET_IFNAME: ", own.status().message()));
    environment.own_address = *std::move(own);
  }
  absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  environment.timeout = *timeout;
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  environment.host = host;
  return environment;
}

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> OpenStore(Environment& environment) {
  absl::Status ready;
  if (environment.store_host == StoreHost::kTorchrun) {
    ready = MeetAtAgent(environment);
  } else if (environment.store_host == StoreHost::kRank0 && environment.rank == 0) {
    ready = Serve(environment, environment.port, environment.port);
  }
  if (!ready.ok()) return ready;
  absl::StatusOr<c10::intrusive_ptr<RunStore>> store = Connect(environment);
  if (!store.ok()) return store.status();
  if (environment.own_address.empty()) environment.own_address = (*store)->local_address();
  return *std::move(store);
}

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> ConnectToStore(const Environment& environment) {
  absl::StatusOr<c10::intrusive_ptr<RunStore>> store = Connect(environment);
  if (!store.ok()) return store.status();
  return *std::move(store);
}

void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store) {
  const std::string key = absl::StrCat("planwright/", what), all = key + "/all";
  try {
    if (store.add(key, 1) == environment.world_size) store.set(all, "");
    store.wait({all}, timeout);
  } catch (const std::exception&) {
    // The store is gone, so there is nobody left to wait for, or a rank never came: the launcher says which.
  }
}

}  // namespace planwright::executor
