#include "tests/state/forms/stored_by_hand.h"

#include <utility>

namespace planwright::testing {
namespace {

size_t Place(const PlainTensor& tensor, const std::vector<int64_t>& index) {
  size_t place = 0;
  for (size_t i = 0; i < index.size(); ++i)
    place = place * static_cast<size_t>(tensor.shape[i]) + static_cast<size_t>(index[i]);
  return place * tensor.width;
}

// Calls `visit` with each index of a shape.
template <typename Visit>
void ForEachIndex(const std::vector<int64_t>& shape, const Visit& visit) {
  std::vector<int64_t> index(shape.size(), 0);
  for (;;) {
    visit(index);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

PlainTensor Rows(const PlainTensor& from, size_t dim, int64_t first, int64_t count) {
  std::vector<int64_t> shape = from.shape;
  shape[dim] = count;
  PlainTensor rows = EmptyTensor(shape, from.width);
  ForEachIndex(shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> there = index;
    there[dim] += first;
    rows.Set(index, from.At(there));
  });
  return rows;
}

PlainTensor Joined(const std::vector<PlainTensor>& parts, size_t dim) {
  std::vector<int64_t> shape = parts[0].shape;
  shape[dim] = 0;
  for (const PlainTensor& part : parts) shape[dim] += part.shape[dim];
  PlainTensor joined = EmptyTensor(shape, parts[0].width);
  int64_t first = 0;
  for (const PlainTensor& part : parts) {
    ForEachIndex(part.shape, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> there = index;
      there[dim] += first;
      joined.Set(there, part.At(index));
    });
    first += part.shape[dim];
  }
  return joined;
}

PlainTensor Swapped(const PlainTensor& from) {
  std::vector<int64_t> shape = from.shape;
  std::swap(shape.back(), shape[shape.size() - 2]);
  PlainTensor swapped = EmptyTensor(shape, from.width);
  ForEachIndex(from.shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> there = index;
    std::swap(there.back(), there[there.size() - 2]);
    swapped.Set(there, from.At(index));
  });
  return swapped;
}

}  // namespace

std::string PlainTensor::At(const std::vector<int64_t>& index) const {
  return bytes.substr(Place(*this, index), width);
}
void PlainTensor::Set(const std::vector<int64_t>& index, const std::string& element) {
  bytes.replace(Place(*this, index), width, element);
}

PlainTensor EmptyTensor(std::vector<int64_t> shape, size_t width) {
  size_t elements = 1;
  for (const int64_t size : shape) elements *= static_cast<size_t>(size);
  return {std::move(shape), width, std::string(elements * width, '\0')};
}

PlainTensor StoredByHand(const std::vector<std::vector<PlainTensor>>& experts, int along, int64_t groups, bool swap,
                         bool stack) {
  const auto dim = static_cast<size_t>(along);
  std::vector<PlainTensor> matrices;
  for (const std::vector<PlainTensor>& parameters : experts) {
    std::vector<PlainTensor> parts;
    for (int64_t group = 0; group < groups; ++group) {
      for (const PlainTensor& parameter : parameters) {
        const int64_t rows = parameter.shape[dim] / groups;
        parts.push_back(Rows(parameter, dim, group * rows, rows));
      }
    }
    PlainTensor matrix = Joined(parts, dim);
    matrices.push_back(swap ? Swapped(matrix) : matrix);
  }
  if (!stack) return matrices[0];
  std::vector<int64_t> shape = matrices[0].shape;
  shape.insert(shape.begin(), static_cast<int64_t>(matrices.size()));
  PlainTensor stacked = EmptyTensor(shape, matrices[0].width);
  ForEachIndex(shape, [&](const std::vector<int64_t>& index) {
    const std::vector<int64_t> there(index.begin() + 1, index.end());
    stacked.Set(index, matrices[static_cast<size_t>(index[0])].At(there));
  });
  return stacked;
}

}  // namespace planwright::testing
