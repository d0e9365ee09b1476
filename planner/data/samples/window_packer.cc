#include "planner/data/samples/window_packer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/base/random/philox.h"
#include "planner/base/text/bug.h"

namespace planwright {

WindowPacker::WindowPacker(int64_t seed, std::vector<int64_t> lengths, int64_t window, int64_t sample_length)
    : seed_(seed), lengths_(std::move(lengths)), window_(window), sample_length_(sample_length) {
  Require(window >= 1 && !lengths_.empty(), "a packer needs documents and a window");
  for (int64_t length : lengths_)
    Require(length >= 1 && length <= sample_length, "a document that does not fit a sample");
}

int64_t WindowPacker::windows() const { return (static_cast<int64_t>(lengths_.size()) + window_ - 1) / window_; }

std::vector<std::vector<int64_t>> WindowPacker::Pack(int64_t turn) const {
  const int64_t epoch = turn / windows(), window = turn % windows();
  const int64_t first = window * window_, end = std::min<int64_t>(first + window_, lengths_.size());
  std::vector<int64_t> documents(end - first);
  std::iota(documents.begin(), documents.end(), first);
  const Philox draws(seed_, absl::StrCat("webdataset.", epoch, ".", window));
  // Fisher and Yates. min: a draw just below 1 may round up to i + 1.
  for (int64_t i = end - first - 1; i > 0; --i) {
    const int64_t other = std::min(static_cast<int64_t>(draws.Uniform(i) * (i + 1)), i);
    std::swap(documents[i], documents[other]);
  }
  std::vector<std::vector<int64_t>> samples;
  int64_t room = 0;  // tokens left in the last sample. Documents are not moved forward to fill gaps: order is kept
  for (int64_t document : documents) {
    if (lengths_[document] > room) {
      samples.emplace_back();
      room = sample_length_;
    }
    samples.back().push_back(document);
    room -= lengths_[document];
  }
  return samples;
}

std::vector<int64_t> WindowPacker::Documents(int64_t sample) {
  // How many samples a window makes depends on its permutation. So turns are packed one after the other up to the one
  // with this sample, and the first sample of each is remembered.
  while (first_sample_.back() <= sample) {
    packed_turn_ = first_sample_.size() - 1;
    packed_ = Pack(packed_turn_);
    first_sample_.push_back(first_sample_.back() + packed_.size());
  }
  const int64_t turn = std::upper_bound(first_sample_.begin(), first_sample_.end(), sample) - first_sample_.begin() - 1;
  if (turn != packed_turn_) {
    packed_turn_ = turn;
    packed_ = Pack(turn);
  }
  return packed_[sample - first_sample_[turn]];
}

}  // namespace planwright
