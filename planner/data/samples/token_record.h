// What is kept of a source of tokens in the folder of the index: the digest of its ids, which have all been read and
// checked, and of which files (docs/training/data.md#index).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/index_format.h"
#include "planner/data/samples/token_idx.h"
#include "planner/plan/plan.h"

namespace planwright {

struct TokenRecord {
  DigestBytes settings{};  // TokenSettingsDigest
  DigestBytes ids{};       // of the ids of all sequences (token_update.h)
  int64_t bytes = 0;       // of PATH.bin
  int64_t changed = 0;     // when PATH.bin was last changed, in nanoseconds since 1970
  DigestBytes sample{};    // SampleOfBin

  bool operator==(const TokenRecord&) const = default;
};

// SHA-256 of windows that lie evenly in PATH.bin, of a small one all: a file that is made anew may have the size and
// the time that it had. Errors of PlainFile.
absl::StatusOr<DigestBytes> SampleOfBin(const PlainFile& bin);

// Of what ids are checked by, of the path as the recipe names it, and of PATH.idx.
DigestBytes TokenSettingsDigest(const DataPlan& data, const SourcePlan& source, const TokenIdx& idx);

// NotFound if there is none. DataLoss, with the path, if the file is damaged, and FailedPrecondition if it is of
// another version.
absl::StatusOr<TokenRecord> ReadTokenRecord(const std::string& path);
absl::Status WriteTokenRecord(const std::string& path, const TokenRecord& record);

// Documents::digest() of the source.
std::string TokenDigest(const TokenIdx& idx, const TokenRecord& record);

}  // namespace planwright
