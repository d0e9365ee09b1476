#include "executor/communication/agreement.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/communication/failure.h"
#include "executor/communication/run_store.h"

namespace planwright::executor {
namespace {

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
  if (!verdict.ok() && environment.store_host != StoreHost::kLauncher)
    WaitForAll(environment, "refused", std::chrono::seconds(5), store);
  return verdict;
}

}  // namespace

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
    return absl::UnavailableError(FirstLineOf(error));
  }
}

absl::Status AgreeOnData(const Environment& environment, const std::string& data_digest, c10d::Store& store) {
  try {
    store.set(kData.Key(environment.rank), StoreValue(absl::StrCat(data_digest, "\n", environment.host)));
    return Verdict(environment, kData, store, ParseData, CompareData);
  } catch (const std::exception& error) {
    return absl::UnavailableError(FirstLineOf(error));
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
    return absl::UnavailableError(FirstLineOf(error));
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
    return absl::UnavailableError(FirstLineOf(error));
  }
}

std::string AwaitFiles(const std::string& key, c10d::Store& store) {
  store.wait({key}, c10d::Store::kNoTimeout);
  return store.get_to_str(key);
}

}  // namespace planwright::executor
