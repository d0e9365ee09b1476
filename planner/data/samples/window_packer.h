// Which documents make up which sample (docs/training/data.md#packed-documents). Documents are divided in windows; each
// window is permuted and packed by itself, anew in each epoch. Samples are numbered through all windows and epochs. So
// sample n is found without packing all documents at once. Knows the lengths of documents only.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright {

class WindowPacker {
 public:
  // `lengths`: tokens of each document, between 1 and `sample_length`; at least one document. `window`: how many
  // documents are permuted together.
  WindowPacker(int64_t seed, std::vector<int64_t> lengths, int64_t window, int64_t sample_length);

  // The documents of a sample, in order. The samples of one window contain each of its documents once; an epoch
  // contains every window once.
  std::vector<int64_t> Documents(int64_t sample);

 private:
  int64_t windows() const;
  // The documents of each sample of a turn. Turn t is window t % windows() of epoch t / windows().
  std::vector<std::vector<int64_t>> Pack(int64_t turn) const;

  const int64_t seed_;
  const std::vector<int64_t> lengths_;
  const int64_t window_, sample_length_;
  std::vector<int64_t> first_sample_{0};  // of each turn packed so far, and of the turn after them
  int64_t packed_turn_ = -1;              // the turn whose samples are in packed_
  std::vector<std::vector<int64_t>> packed_;
};

}  // namespace planwright
