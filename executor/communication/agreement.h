// What all ranks must have alike before the first step, and what they tell each other of it through the run's store:
// the run and its plan, and the data.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "executor/communication/rendezvous.h"

namespace planwright::executor {

// Every rank posts its nonce, plan digest and host before any collective. Rank 0 reads them and says what is wrong: if
// a rank differs from the majority, every rank gets FailedPrecondition, which names that rank with its host and both
// digests. Unavailable, with the missing ranks, if not all come within the timeout.
absl::Status AgreeOnPlan(const Environment& environment, const std::string& plan_digest, c10d::Store& store);

// The same for what the files of samples say of their numbering (SampleSource::digest), once they are open; empty: this
// rank reads none. FailedPrecondition if a rank has other data than most that read samples; it is named with its host
// and both digests. Unavailable, with the missing ranks, if not all come within the timeout, as a rank that cannot open
// its files never comes.
absl::Status AgreeOnData(const Environment& environment, const std::string& data_digest, c10d::Store& store);

// SampleSource::SourceDigests for all ranks, of which some read no samples: they get those of a rank that does, after
// AgreeOnData. A rank that reads samples posts its own ones before it. Unavailable if the store cannot be reached.
absl::Status PostSources(const std::map<std::string, std::string>& digests, c10d::Store& store);
absl::StatusOr<std::map<std::string, std::string>> PostedSources(c10d::Store& store);

// The value of a key that another rank sets when it has read or written its part of a checkpoint. No time is too long
// for that: while its bytes move it goes on, and when they do not its own watchdog ends it, and so the run.
// CommunicationError if the store is lost.
std::string AwaitFiles(const std::string& key, c10d::Store& store);

}  // namespace planwright::executor
