#include "executor/communication/rendezvous.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "executor/communication/failure.h"
#include "executor/communication/resolve.h"
#include "executor/communication/run_store.h"
#include "planner/connection/socket_address.h"
#include "planner/rendezvous/interface_address.h"
#include "planner/rendezvous/store_server.h"
#include "planner/run_files/run_timeout.h"

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

// c10d's own errors go on for a screen.
std::string FirstLine(const std::string& text) { return text.substr(0, std::min<size_t>(text.find('\n'), 300)); }

// An occasion on which every rank posts something, rank 0 judges it, and all read the verdict.
struct Occasion {
  const char* name;
  const char* question;  // that the verdict answers

  std::string Key(int rank) const { return absl::StrCat("planwright/", name, "/", rank); }
  std::string verdict() const { return absl::StrCat("planwright/", name, "/verdict"); }
};
constexpr Occasion kHello{"hello", "whether all ranks have one plan"};
constexpr Occasion kData{"data", "whether all ranks have the same data"};
constexpr char kSources[] = "planwright/sources";

// What a rank posts about itself. Ordered by run and plan, so that hellos can be counted like votes.
struct Hello {
  std::string nonce, digest, host;
  bool operator==(const Hello&) const = default;
  bool operator<(const Hello& other) const { return std::tie(nonce, digest) < std::tie(other.nonce, other.digest); }
};

Hello Parse(const std::vector<uint8_t>& bytes) {
  const std::vector<std::string> fields = absl::StrSplit(std::string(bytes.begin(), bytes.end()), '\n');
  // Not written by an executor, or by one of another version.
  if (fields.size() != 4) return {"", "", "an unknown program"};
  return {fields[0], fields[1], fields[2]};
}

std::string Describe(int rank, const Hello& hello) {
  return absl::StrCat("rank ", rank, " on ", hello.host, " (plan ", hello.digest.substr(0, 12), ", run ", hello.nonce,
                      ")");
}

// The plan that most ranks have is taken for the right one (on a tie that of rank 0), and the others are named.
absl::Status CompareHellos(const std::vector<Hello>& hellos) {
  std::map<Hello, int> votes;
  for (const Hello& hello : hellos) ++votes[hello];
  if (votes.size() == 1) return absl::OkStatus();
  const Hello* most = &hellos[0];  // rank 0's unless another has strictly more votes
  for (const Hello& hello : hellos) {
    if (votes[hello] > votes[*most]) most = &hello;
  }
  std::vector<std::string> strangers;
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    if (hellos[rank].nonce != most->nonce || hellos[rank].digest != most->digest) {
      strangers.push_back(Describe(static_cast<int>(rank), hellos[rank]));
    }
  }
  return absl::FailedPreconditionError(absl::StrCat("expected plan ", most->digest.substr(0, 12), ", run ", most->nonce,
                                                    " on all ranks, but found ", absl::StrJoin(strangers, ", ")));
}

// What a rank says of its data.
struct DataHello {
  std::string digest, host;  // empty digest: it reads no samples
};

DataHello ParseData(const std::vector<uint8_t>& bytes) {
  const std::pair<std::string, std::string> fields =
      absl::StrSplit(std::string(bytes.begin(), bytes.end()), absl::MaxSplits('\n', 1));
  return {fields.first, fields.second};
}

// As for plans: what most have is taken for right, and on a tie what the first rank has.
absl::Status CompareData(const std::vector<DataHello>& hellos) {
  std::map<std::string, int> votes;
  for (const DataHello& hello : hellos) votes[hello.digest] += hello.digest.empty() ? 0 : 1;
  std::string most;
  for (const DataHello& hello : hellos) {
    if (votes[hello.digest] > votes[most]) most = hello.digest;
  }
  std::vector<std::string> strangers;
  for (size_t rank = 0; rank < hellos.size(); ++rank) {
    const DataHello& hello = hellos[rank];
    if (!hello.digest.empty() && hello.digest != most)
      strangers.push_back(absl::StrCat("rank ", rank, " on ", hello.host, " (data ", hello.digest.substr(0, 12), ")"));
  }
  if (strangers.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("expected data ", most.substr(0, 12), " on all ranks, but found ", absl::StrJoin(strangers, ", "),
                   ": the files of samples, or their index, differ there; bring the same files to all nodes, and run "
                   "`plan data index` again"));
}

absl::Status MissingRanks(const Environment& environment, const Occasion& occasion, c10d::Store& store) {
  std::vector<int> missing;
  for (int rank = 0; rank < environment.world_size; ++rank) {
    if (!store.check({occasion.Key(rank)})) missing.push_back(rank);
  }
  if (missing.empty()) return absl::UnavailableError(absl::StrCat("rank 0 did not say ", occasion.question));
  return absl::UnavailableError(absl::StrCat("ranks that did not come: ", absl::StrJoin(missing, ", "), " (within ",
                                             static_cast<double>(environment.timeout.count()) / 1000, " s)"));
}

// Only rank 0 calls it and reads what all have posted: a message for each pair of ranks would be too many.
template <typename Posted>
absl::Status Judge(const Environment& environment, const Occasion& occasion, c10d::Store& store,
                   Posted (*parse)(const std::vector<uint8_t>&), absl::Status (*compare)(const std::vector<Posted>&)) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < environment.world_size; ++rank) keys.push_back(occasion.Key(rank));
  try {
    store.wait(keys, environment.timeout);
  } catch (const std::exception&) {
    return MissingRanks(environment, occasion, store);  // throws too if the store is lost
  }
  std::vector<Posted> posted;
  for (const std::vector<uint8_t>& bytes : store.multiGet(keys)) posted.push_back(parse(bytes));
  return compare(posted);
}

absl::Status ReadVerdict(const Environment& environment, const Occasion& occasion, c10d::Store& store) {
  try {
    store.wait({occasion.verdict()}, environment.timeout);
  } catch (const std::exception&) {
    return MissingRanks(environment, occasion, store);
  }
  const std::pair<std::string, std::string> verdict =
      absl::StrSplit(store.get_to_str(occasion.verdict()), absl::MaxSplits('\n', 1));
  int code = 0;
  if (!absl::SimpleAtoi(verdict.first, &code)) return absl::UnavailableError("rank 0 is an unknown program");
  return absl::Status(static_cast<absl::StatusCode>(code), verdict.second);
}

// After this rank has posted.
template <typename Posted>
absl::Status Verdict(const Environment& environment, const Occasion& occasion, c10d::Store& store,
                     Posted (*parse)(const std::vector<uint8_t>&),
                     absl::Status (*compare)(const std::vector<Posted>&)) {
  absl::Status verdict;
  if (environment.rank == 0) {
    verdict = Judge(environment, occasion, store, parse, compare);
    store.set(occasion.verdict(), StoreValue(absl::StrCat(verdict.raw_code(), "\n", verdict.message())));
  } else {
    verdict = ReadVerdict(environment, occasion, store);
  }
  // All ranks must have read it before rank 0 ends and takes the store with it.
  if (!verdict.ok()) WaitForAll(environment, "refused", std::chrono::seconds(5), store);
  return verdict;
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
                                               " does not say where rank 0 "
                                               "serves: ",
                                               FirstLine(MessageOf(error))));
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

absl::Status AgreeOnPlan(const Environment& environment, const std::string& plan_digest, c10d::Store& store) {
  try {
    // compareSet keeps the first post of each rank number. A rank that finds its number taken has met another run's
    // store, or was started twice.
    const Hello mine{environment.nonce, plan_digest, environment.host};
    // With the process id, so that two processes with one rank number never post the same text.
    const std::string text = absl::StrCat(mine.nonce, "\n", mine.digest, "\n", mine.host, "\n", getpid());
    const std::vector<uint8_t> stored = store.compareSet(kHello.Key(environment.rank), {}, StoreValue(text));
    if (stored != StoreValue(text)) {
      return absl::FailedPreconditionError(absl::StrCat("the store at ", environment.address, ":", environment.port,
                                                        " already has ", Describe(environment.rank, Parse(stored)),
                                                        "; this is ", Describe(environment.rank, mine)));
    }
    return Verdict(environment, kHello, store, Parse, CompareHellos);
  } catch (const std::exception& error) {
    return absl::UnavailableError(FirstLine(MessageOf(error)));
  }
}

absl::Status AgreeOnData(const Environment& environment, const std::string& data_digest, c10d::Store& store) {
  try {
    store.set(kData.Key(environment.rank), StoreValue(absl::StrCat(data_digest, "\n", environment.host)));
    return Verdict(environment, kData, store, ParseData, CompareData);
  } catch (const std::exception& error) {
    return absl::UnavailableError(FirstLine(MessageOf(error)));
  }
}

absl::Status PostSources(const std::map<std::string, std::string>& digests, c10d::Store& store) {
  try {
    // A digest has no space.
    store.set(kSources, StoreValue(absl::StrJoin(digests, "\n", [](std::string* out, const auto& source) {
                absl::StrAppend(out, source.second, " ", source.first);
              })));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::UnavailableError(FirstLine(MessageOf(error)));
  }
}

absl::StatusOr<std::map<std::string, std::string>> PostedSources(c10d::Store& store) {
  try {
    std::map<std::string, std::string> digests;
    const std::string text = store.get_to_str(kSources);
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::pair<std::string, std::string> source = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      digests[source.second] = source.first;
    }
    return digests;
  } catch (const std::exception& error) {
    return absl::UnavailableError(FirstLine(MessageOf(error)));
  }
}

void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store) {
  if (environment.store_host == StoreHost::kLauncher) return;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::string key = absl::StrCat("planwright/", what);
  try {
    int64_t here = store.add(key, 1);
    while (environment.rank == 0 && here < environment.world_size && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      here = store.add(key, 0);
    }
  } catch (const std::exception&) {
    // The store is gone: there is nobody left to wait for.
  }
}

}  // namespace planwright::executor
