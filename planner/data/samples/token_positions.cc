#include "planner/data/samples/token_positions.h"

#include <algorithm>
#include <cstddef>

namespace planwright {
namespace {

// How far the images of one encoder have come.
struct Cursor {
  size_t image = 0;    // the one whose tokens come next
  int64_t taken = 0;   // of its tokens
  int64_t begins = 0;  // at this number
};

}  // namespace

std::vector<std::array<int64_t, 3>> TokenPositions(const DataPlan& data, const Sample& sample) {
  std::vector<std::array<int64_t, 3>> positions;
  positions.reserve(sample.tokens.size());
  std::vector<Cursor> cursors(data.encoders.size());
  int64_t next = 0;
  auto end = sample.document_ends.begin();
  for (const int64_t token : sample.tokens) {
    while (end != sample.document_ends.end() && *end <= static_cast<int64_t>(positions.size())) {
      next = 0;
      ++end;
    }
    const auto encoder = std::find_if(data.encoders.begin(), data.encoders.end(),
                                      [&](const EncoderData& each) { return each.token == token; });
    const auto e = static_cast<size_t>(encoder - data.encoders.begin());
    if (e == data.encoders.size() || e >= sample.images.size() || cursors[e].image >= sample.images[e].size()) {
      positions.push_back({next, next, next});
      ++next;
      continue;
    }
    Cursor& cursor = cursors[e];
    const Image& image = sample.images[e][cursor.image];
    const int64_t rows = image.rows / encoder->pixel_shuffle, columns = image.cols / encoder->pixel_shuffle;
    if (cursor.taken == 0) {
      cursor.begins = next;
      next += std::max(rows, columns);
    }
    positions.push_back(
        {cursor.begins, cursor.begins + cursor.taken / columns, cursor.begins + cursor.taken % columns});
    if (++cursor.taken == rows * columns) {
      ++cursor.image;
      cursor.taken = 0;
    }
  }
  return positions;
}

}  // namespace planwright
