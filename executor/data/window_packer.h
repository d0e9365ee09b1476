// Which documents make which sample (design, `data.kind` webdataset): windows of documents, each permuted and packed by
// itself, numbered through windows and epochs. Knows lengths only.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright::executor {

class WindowPacker {
 public:
  // `lengths`: tokens of each document, 1 to `sample_length`, at least one document. `window`: documents that are
  // permuted together.
  WindowPacker(int64_t seed, std::vector<int64_t> lengths, int64_t window, int64_t sample_length);

  // The documents of a sample, in order. Samples of one window hold each of its documents once; an epoch has every
  // window once.
  std::vector<int64_t> Documents(int64_t sample);

 private:
  int64_t windows() const;
  // The samples of a turn: window turn % windows() of epoch turn / windows().
  std::vector<std::vector<int64_t>> Pack(int64_t turn) const;

  const int64_t seed_;
  const std::vector<int64_t> lengths_;
  const int64_t window_, sample_length_;
  std::vector<int64_t> first_sample_{0};  // of each turn packed so far, and of the one after
  int64_t packed_turn_ = -1;              // whose samples are packed_
  std::vector<std::vector<int64_t>> packed_;
};

}  // namespace planwright::executor
