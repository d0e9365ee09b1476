// What the entries of a step wait for on other streams of their own rank (stream_dependencies.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/plan/link/linked_program.h"

namespace planwright {

class StreamWaits {
 public:
  explicit StreamWaits(const LinkedProgram& program);

  int streams() const { return streams_; }  // that the program uses

  // The entries that must be done before this one starts, at most one of each other stream. Entries are counted from
  // the first of the step. What the step before has left is done.
  std::span<const uint32_t> of(size_t entry) const {
    if (ends_.empty()) return {};
    const uint32_t first = entry == 0 ? 0 : ends_[entry - 1];
    return {waits_.data() + first, ends_[entry] - first};
  }

 private:
  int streams_ = 1;
  std::vector<uint32_t> ends_;   // by entry: where its waits end; empty: there is one stream, and nothing waits
  std::vector<uint32_t> waits_;  // of all entries
};

}  // namespace planwright
