#include "executor/communication/rendezvous.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

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
  // rank would take the place of another.
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

// What a rank posts about itself. Ordered by run and plan, so that hellos can be counted like votes.
struct Hello {
  std::string nonce, digest, host;
  bool operator==(const Hello&) const = default;
  bool operator<(const Hello& other) const { return std::tie(nonce, digest) < std::tie(other.nonce, other.digest); }
};

std::string Key(int rank) { return absl::StrCat("planwright/hello/", rank); }
std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

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

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> Open(const Environment& environment, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(environment.port);
  options.isServer = serves;
  options.waitWorkers = false;  // AgreeOnPlan waits, and can name who is missing
  options.timeout = environment.timeout;
  try {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::TCPStore>(environment.address, options);
    return store;
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat(serves ? "cannot serve" : "cannot reach", " the store at ",
                                               environment.address, ":", environment.port, ": ",
                                               absl::string_view(error.what()).substr(0, 300)));
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
  environment.nonce = Variable("PLANWRIGHT_NONCE").value_or("none");
  absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  environment.timeout = *timeout;
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  environment.host = host;
  return environment;
}

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> OpenStore(const Environment& environment) {
  return Open(environment, environment.rank == 0);
}

absl::StatusOr<c10::intrusive_ptr<c10d::Store>> ConnectToStore(const Environment& environment) {
  return Open(environment, false);
}

absl::Status AgreeOnPlan(const Environment& environment, const std::string& plan_digest, c10d::Store& store) {
  try {
    // compareSet keeps the first post of each rank number. A rank that finds its number taken has met another run's
    // store, or was started twice.
    const Hello mine{environment.nonce, plan_digest, environment.host};
    // With the process id, so that two processes with one rank number never post the same text.
    const std::string text = absl::StrCat(mine.nonce, "\n", mine.digest, "\n", mine.host, "\n", getpid());
    const std::vector<uint8_t> stored = store.compareSet(Key(environment.rank), {}, Bytes(text));
    if (stored != Bytes(text)) {
      return absl::FailedPreconditionError(absl::StrCat("the store at ", environment.address, ":", environment.port,
                                                        " already has ", Describe(environment.rank, Parse(stored)),
                                                        "; this is ", Describe(environment.rank, mine)));
    }
    std::vector<std::string> keys;
    for (int rank = 0; rank < environment.world_size; ++rank) keys.push_back(Key(rank));
    try {
      store.wait(keys, environment.timeout);
    } catch (const std::exception&) {
      // The time-out of the store does not say which keys are missing. Ask for each.
      std::vector<int> missing;
      for (int rank = 0; rank < environment.world_size; ++rank) {
        if (!store.check({keys[rank]})) missing.push_back(rank);
      }
      return absl::UnavailableError(absl::StrCat("ranks that did not come: ", absl::StrJoin(missing, ", "), " (within ",
                                                 environment.timeout.count() / 1000, " s)"));
    }
    std::vector<Hello> hellos;
    for (const std::vector<uint8_t>& bytes : store.multiGet(keys)) hellos.push_back(Parse(bytes));
    const absl::Status status = CompareHellos(hellos);
    // All ranks must have read the hellos before rank 0 ends and takes the store with it.
    if (!status.ok()) WaitForAll(environment, "refused", std::chrono::seconds(5), store);
    return status;
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("the connection to the store is lost: ", absl::string_view(error.what()).substr(0, 300)));
  }
}

void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store) {
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
