// One source of tokens whose record is brought up to date: all its ids are read once, checked and summed.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "planner/data/samples/index_files.h"
#include "planner/data/samples/token_idx.h"
#include "planner/data/samples/token_record.h"
#include "planner/data/samples/token_rule.h"
#include "planner/plan/plan.h"

namespace planwright {

class TokenUpdate {
 public:
  // Errors of TokenIdx::Open.
  static absl::StatusOr<TokenUpdate> Open(const DataPlan& data, const SourcePlan& source);

  // Whether the record is there and of these files, with these settings. `anew`: it is not used.
  void Look(bool anew);
  bool fresh() const { return fresh_; }
  // Why ids are read again that look as if they need not be; empty: they are not, or are changed.
  const std::string& note() const { return note_; }
  int64_t bytes() const { return now_.bytes; }  // of PATH.bin

  // Reads all ids, with up to `jobs` threads. progress(documents, bytes) is called by any of them. InvalidArgument: the
  // first wrong ids, a line each. Unavailable: the file cannot be read, or changed meanwhile.
  absl::Status Read(int jobs, absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress);

  // Writes the record of what Read has read.
  absl::Status Keep() const { return WriteTokenRecord(record_path_, now_); }

  // Of the record, which is up to date.
  IndexedSource Summary() const;

 private:
  struct Part {
    int64_t first = 0, end = 0;  // sequences
    std::string digest;
    std::vector<std::pair<int64_t, std::string>> wrong;  // documents, and why
    absl::Status status;
  };

  TokenUpdate(const DataPlan& data, const SourcePlan& source, TokenIdx idx);
  std::vector<Part> Parts() const;
  absl::Status ReadPart(Part& part) const;

  std::string name_, record_path_, note_;
  TokenRule rule_;
  TokenIdx idx_;
  TokenRecord now_;  // of the files as they are; its ids are known if it is fresh, or has been read
  bool fresh_ = false, read_ = false;
};

}  // namespace planwright
