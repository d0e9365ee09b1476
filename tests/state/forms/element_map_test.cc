// Where files have the elements of parameters: random forms and slices beside arrays that are cut, joined and
// transposed element by element.
#include "planner/state/forms/element_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/state/forms/stored_by_hand.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using testing::EmptyTensor;
using ::testing::IsEmpty;
using testing::PlainTensor;
using testing::StoredByHand;

// A form, and what a file has by it: of each element the number that it has among those of all parameters.
struct Case {
  int along = 0;
  int64_t groups = 1;
  bool swap = false, stack = false;
  int64_t experts = 1;
  std::vector<std::vector<int64_t>> shapes;  // of the parameters of an expert
  std::vector<int64_t> disk;                 // numbers
  std::vector<ElementMap> maps;              // of each parameter of each expert
  std::vector<int64_t> first;                // the number of its element 0
};

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

// What a case is, where a check of it fails.
std::string TextOf(const Case& of) {
  std::string text = "along " + std::to_string(of.along) + " each " + std::to_string(of.groups) +
                     (of.swap ? " swap" : "") + (of.stack ? " stack" : "") + " experts " + std::to_string(of.experts);
  for (const std::vector<int64_t>& shape : of.shapes) {
    text += " [";
    for (const int64_t size : shape) text += " " + std::to_string(size);
    text += " ]";
  }
  return text;
}

void Fill(Case& of) {
  int64_t number = 0;
  std::vector<std::vector<PlainTensor>> experts;
  for (int64_t expert = 0; expert < of.experts; ++expert) {
    std::vector<PlainTensor>& parameters = experts.emplace_back();
    for (const std::vector<int64_t>& shape : of.shapes) {
      of.first.push_back(number);
      PlainTensor tensor = EmptyTensor(shape, sizeof(int64_t));
      for (int64_t i = 0; i < Product(shape); ++i, ++number)
        std::memcpy(tensor.bytes.data() + i * sizeof number, &number, sizeof number);
      parameters.push_back(std::move(tensor));
    }
  }
  const PlainTensor stored = StoredByHand(experts, of.along, of.groups, of.swap, of.stack);
  of.disk.resize(stored.bytes.size() / sizeof(int64_t));
  std::memcpy(of.disk.data(), stored.bytes.data(), stored.bytes.size());
  const auto dim = static_cast<size_t>(of.along);
  std::vector<int64_t> matrix = of.shapes[0];
  matrix[dim] = 0;
  for (const std::vector<int64_t>& shape : of.shapes) matrix[dim] += shape[dim];
  for (int64_t expert = 0; expert < of.experts; ++expert) {
    int64_t before = 0;
    for (const std::vector<int64_t>& shape : of.shapes) {
      of.maps.push_back(ElementMap({.shape = shape,
                                    .along = of.along,
                                    .groups = of.groups,
                                    .before = before,
                                    .rows = matrix[dim],
                                    .swap = of.swap,
                                    .first = expert * Product(matrix)}));
      before += shape[dim];
    }
  }
}

Case RandomCase(std::mt19937& random) {
  const auto from = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Case made;
  const int64_t dims = from(1, 4);
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < dims; ++i) shape.push_back(from(1, 5));
  made.along = static_cast<int>(from(0, dims - 1));
  made.groups = from(1, 3);
  made.swap = dims > 1 && from(0, 1) == 1;
  made.experts = from(0, 1) == 1 ? from(1, 3) : 1;
  made.stack = made.experts > 1 || from(0, 1) == 1;
  for (int64_t count = from(1, 3); count > 0; --count) {
    shape[static_cast<size_t>(made.along)] = made.groups * from(1, 4);
    made.shapes.push_back(shape);
  }
  Fill(made);
  return made;
}

// The elements of a box, one by one.
void ForEachElement(const ElementBox& box, const std::function<void(int64_t whole, int64_t disk)>& visit,
                    size_t dim = 0, int64_t whole = 0, int64_t disk = 0) {
  if (dim == box.dims.size()) return visit(box.whole + whole, box.disk + disk);
  const MapDim& of = box.dims[dim];
  for (int64_t i = 0; i < of.size; ++i) ForEachElement(box, visit, dim + 1, whole + i * of.whole, disk + i * of.disk);
}

class RandomForms : public ::testing::Test {
 protected:
  std::mt19937 random_{7};
  int64_t From(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
};

TEST_F(RandomForms, SlicesOfParametersAreBoxesOnDisk) {
  for (int i = 0; i < 1500; ++i) {
    const Case of = RandomCase(random_);
    for (size_t p = 0; p < of.maps.size(); ++p) {
      const int64_t elements = Product(of.shapes[p % of.shapes.size()]);
      const int64_t first = From(0, elements - 1), count = From(0, elements - first);
      std::vector<int> seen(static_cast<size_t>(count), 0);
      const std::vector<ElementBox> boxes = of.maps[p].BoxesOf(first, count);
      ASSERT_LE(boxes.size(), 2 * (of.shapes[0].size() + 1)) << TextOf(of);
      for (const ElementBox& box : boxes) {
        int64_t visited = 0;
        ForEachElement(box, [&](int64_t whole, int64_t disk) {
          ++visited;
          ASSERT_EQ(of.disk.at(static_cast<size_t>(disk)), of.first[p] + whole) << TextOf(of);
          ++seen.at(static_cast<size_t>(whole - first));
        });
        ASSERT_EQ(visited, box.elements());
      }
      ASSERT_THAT(seen, ::testing::Each(1)) << TextOf(of);
    }
  }
}

TEST_F(RandomForms, RangesOfTheDiskAreBoxesOfParameters) {
  for (int i = 0; i < 1500; ++i) {
    const Case of = RandomCase(random_);
    const auto size = static_cast<int64_t>(of.disk.size());
    const int64_t first = From(0, size - 1), count = From(0, size - first);
    std::vector<int64_t> found(static_cast<size_t>(count), -1);
    for (size_t p = 0; p < of.maps.size(); ++p) {
      int64_t before = -1;
      for (const ElementBox& box : of.maps[p].BoxesOnDisk(first, count)) {
        ForEachElement(box, [&](int64_t whole, int64_t disk) {
          ASSERT_GT(disk, before) << TextOf(of);  // in the order of the file
          before = disk;
          int64_t& number = found.at(static_cast<size_t>(disk - first));
          ASSERT_EQ(number, -1) << TextOf(of);
          number = of.first[p] + whole;
        });
      }
    }
    ASSERT_EQ(found, std::vector<int64_t>(of.disk.begin() + first, of.disk.begin() + first + count)) << TextOf(of);
  }
}

// All parameters written, in pieces, and read again, in others.
TEST_F(RandomForms, WritingAndReadingIsTheIdentity) {
  for (int i = 0; i < 300; ++i) {
    const Case of = RandomCase(random_);
    std::vector<int64_t> disk(of.disk.size(), -1);
    for (int64_t at = 0; at < static_cast<int64_t>(disk.size());) {
      const int64_t count = std::min<int64_t>(From(1, 9), static_cast<int64_t>(disk.size()) - at);
      for (size_t p = 0; p < of.maps.size(); ++p) {
        for (const ElementBox& box : of.maps[p].BoxesOnDisk(at, count))
          ForEachElement(
              box, [&](int64_t whole, int64_t place) { disk.at(static_cast<size_t>(place)) = of.first[p] + whole; });
      }
      at += count;
    }
    ASSERT_EQ(disk, of.disk) << TextOf(of);
    for (size_t p = 0; p < of.maps.size(); ++p) {
      const int64_t elements = Product(of.shapes[p % of.shapes.size()]);
      for (int64_t at = 0; at < elements;) {
        const int64_t count = std::min(From(1, 9), elements - at);
        for (const ElementBox& box : of.maps[p].BoxesOf(at, count))
          ForEachElement(box, [&](int64_t whole, int64_t place) {
            ASSERT_EQ(disk.at(static_cast<size_t>(place)), of.first[p] + whole) << TextOf(of);
          });
        at += count;
      }
    }
  }
}

// What is one run stays one run, whatever is around it.
TEST(ElementMap, ContiguousPartsAreOneRun) {
  const ElementMap key({.shape = {4, 6}, .before = 8, .rows = 16, .first = 960});
  EXPECT_TRUE(key.contiguous());
  EXPECT_EQ(key.first(), 960 + 8 * 6);
  const std::vector<ElementBox> boxes = key.BoxesOf(3, 20);
  ASSERT_EQ(boxes.size(), 1);
  EXPECT_EQ(boxes[0].whole, 3);
  EXPECT_EQ(boxes[0].disk, 960 + 51);
  EXPECT_THAT(boxes[0].dims, ElementsAre(MapDim{20, 1, 1}));
  EXPECT_THAT(key.BoxesOnDisk(0, 1008), IsEmpty());
  EXPECT_EQ(key.BoxesOnDisk(0, 1009)[0].elements(), 1);
  const ElementMap one({.shape = {1, 1}, .rows = 1});
  EXPECT_TRUE(one.contiguous());
  EXPECT_EQ(one.BoxesOf(0, 1).size(), 1);
}

TEST(ElementMap, GroupsAndSwapsAreNotContiguous) {
  const ElementMap grouped({.shape = {4, 6}, .groups = 2, .before = 4, .rows = 8});
  EXPECT_FALSE(grouped.contiguous());
  // Rows 0 and 1 behind the first two of the other parameter, rows 2 and 3 four rows further.
  ASSERT_EQ(grouped.BoxesOf(0, 24).size(), 1);
  EXPECT_EQ(grouped.BoxesOf(0, 24)[0].disk, 12);
  EXPECT_THAT(grouped.BoxesOf(0, 24)[0].dims, ElementsAre(MapDim{2, 12, 24}, MapDim{12, 1, 1}));
  const ElementMap swapped({.shape = {4, 6}, .rows = 4, .swap = true});
  EXPECT_FALSE(swapped.contiguous());
  EXPECT_THAT(swapped.BoxesOf(0, 24)[0].dims, ElementsAre(MapDim{6, 1, 4}, MapDim{4, 6, 1}));
}

}  // namespace
}  // namespace planwright
