#include "planner/data/samples/first_fit.h"

#include <algorithm>

namespace planwright {

void FirstFit::Begin(int64_t items) {
  leaves_ = 1;
  while (leaves_ < items) leaves_ *= 2;
  // Samples that are not open yet have all their room: so the first with room is found in one way.
  rooms_.assign(2 * leaves_, room_);
}

int64_t FirstFit::Place(int64_t tokens) {
  int64_t node = 1;
  while (node < leaves_) node = 2 * node + (rooms_[2 * node] < tokens);
  const int64_t sample = node - leaves_;
  rooms_[node] -= tokens;
  for (node /= 2; node >= 1; node /= 2) rooms_[node] = std::max(rooms_[2 * node], rooms_[2 * node + 1]);
  return sample;
}

}  // namespace planwright
