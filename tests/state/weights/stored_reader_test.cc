// Parameters that are parts of tensors, read in any slices, beside tensors that are made element by element.
#include "planner/state/weights/stored_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/state/forms/stored_by_hand.h"
#include "tests/state/weights/published.h"

namespace planwright::testing {
namespace {

// A parameter, and where it is in a file.
struct Stored {
  std::string name;
  PlainTensor plain;
  ElementMap map;
};

class StoredReading : public ::testing::Test {
 protected:
  int64_t From(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  // A file of one tensor of random parameters in a random form.
  void Make(const std::string& type, int64_t largest) {
    stored_.clear();
    const int64_t dims = From(1, 3), experts = From(1, 3), groups = From(1, 3), count = From(1, 3);
    const auto along = static_cast<size_t>(From(0, dims - 1));
    const bool swap = dims > 1 && From(0, 1) == 1, stack = experts > 1 || From(0, 1) == 1;
    std::vector<int64_t> shape;
    for (int64_t i = 0; i < dims; ++i) shape.push_back(From(1, largest));
    std::vector<int64_t> rows;
    int64_t all = 0;
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back(groups * From(1, largest));
      all += rows.back();
    }
    std::vector<std::vector<PlainTensor>> parameters;
    std::vector<int64_t> matrix = shape;
    matrix[along] = all;
    for (int64_t expert = 0; expert < experts; ++expert) {
      int64_t before = 0;
      parameters.emplace_back();
      for (int64_t i = 0; i < count; ++i) {
        shape[along] = rows[static_cast<size_t>(i)];
        const std::string name = std::to_string(expert) + "." + std::to_string(i);
        const RawTensor raw = Numbers(type, shape, [&](int64_t at) { return PublishedValue(name, at); });
        const PlainTensor plain{shape, raw.bytes.size() / static_cast<size_t>(ElementsOf(shape)), raw.bytes};
        parameters.back().push_back(plain);
        stored_.push_back({name, plain,
                           ElementMap({.shape = shape,
                                       .along = static_cast<int>(along),
                                       .groups = groups,
                                       .before = before,
                                       .rows = all,
                                       .swap = swap,
                                       .first = expert * ElementsOf(matrix)})});
        before += rows[static_cast<size_t>(i)];
      }
    }
    const PlainTensor disk = StoredByHand(parameters, static_cast<int>(along), groups, swap, stack);
    WriteText(path(), FileOf({{"disk", {type, disk.shape, disk.bytes}},
                              {"before", Numbers(type, {3}, [](int64_t) { return 1; })}}));
    auto opened = WeightFiles::Open(path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    files_ = *std::move(opened);
    reader_ = std::make_unique<StoredReader>(*files_);
    for (const Stored& one : stored_) reader_->Add(one.name, "disk", one.plain.shape, one.map);
  }

  // As ranks have slices: the same part of each of the outer indices.
  std::vector<ElementRun> RandomRuns(const std::vector<int64_t>& shape) {
    const size_t dim = static_cast<size_t>(From(0, static_cast<int64_t>(shape.size()) - 1));
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < shape.size(); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : shape[i];
    const int64_t first = From(0, shape[dim] - 1), count = From(1, shape[dim] - first);
    std::vector<ElementRun> runs;
    int64_t local = From(0, 3);
    for (int64_t o = From(0, outer - 1); o < outer; ++o) {
      runs.push_back({local, (o * shape[dim] + first) * inner, count * inner});
      local += count * inner;
    }
    // A part of them, as a thread takes.
    return ClipRuns(runs, From(0, local / 3), local - From(0, local / 3));
  }

  void Check(const std::string& type, DType read_as) {
    const auto width = static_cast<size_t>(DTypeBytes(read_as));
    for (const Stored& one : stored_) {
      ASSERT_EQ(reader_->TypeOf(one.name)->shape, one.plain.shape);
      const std::vector<ElementRun> runs = RandomRuns(one.plain.shape);
      int64_t room = 0;
      for (const ElementRun& run : runs) room = std::max(room, run.local + run.count);
      std::vector<std::byte> got(static_cast<size_t>(room) * width, std::byte{0x5a}), expected = got;
      const std::string numbers =
          BytesOf(read_as == DType::kBf16   ? "BF16"
                  : read_as == DType::kFp32 ? "F32"
                                            : "F64",
                  ElementsOf(one.plain.shape), [&](int64_t at) { return PublishedValue(one.name, at); });
      for (const ElementRun& run : runs) {
        std::memcpy(expected.data() + static_cast<size_t>(run.local) * width,
                    numbers.data() + static_cast<size_t>(run.whole) * width, static_cast<size_t>(run.count) * width);
      }
      const absl::Status read = reader_->Read(one.name, runs, got, ElementReader::Numbers::kFinite);
      ASSERT_TRUE(read.ok()) << read;
      ASSERT_EQ(got, expected) << type;
    }
  }

  std::string path() const { return folder_.path() + "/disk.safetensors"; }

  TestFolder folder_;
  std::mt19937 random_{11};
  std::vector<Stored> stored_;
  std::unique_ptr<WeightFiles> files_;
  std::unique_ptr<StoredReader> reader_;
};

TEST_F(StoredReading, GivesTheElementsOfAnySlices) {
  for (int i = 0; i < 120; ++i) {
    Make("BF16", 7);
    for (int j = 0; j < 4; ++j) Check("BF16", DType::kBf16);
  }
  for (int i = 0; i < 20; ++i) {
    Make("F16", 7), Check("F16", DType::kFp32);
    Make("F32", 7), Check("F32", DType::kFp32);
    Make("F64", 7), Check("F64", DType::kFp64);
  }
}

// Rows that are longer than what is read together, and windows that do not hold all.
TEST_F(StoredReading, GivesTheElementsOfLongRows) {
  for (int i = 0; i < 12; ++i) {
    Make("F64", 60);
    Check("F64", DType::kFp64);
  }
}

TEST_F(StoredReading, ReadsOneRunWhereItIsOne) {
  WriteText(path(), FileOf({{"disk", Numbers("F32", {96, 64}, [](int64_t at) { return PublishedValue("", at); })}}));
  auto opened = WeightFiles::Open(path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  StoredReader reader(**opened);
  reader.Add("k", "disk", {32, 64}, ElementMap({.shape = {32, 64}, .before = 32, .rows = 96}));
  std::vector<std::byte> to(16 * 64 * 4);
  ASSERT_TRUE(reader.Read("k", {{0, 16 * 64, 16 * 64}}, to, ElementReader::Numbers::kFinite).ok());
  EXPECT_EQ(reader.bytes_read(), 16 * 64 * 4);
  EXPECT_EQ(
      std::memcmp(to.data(),
                  BytesOf("F32", 16 * 64, [](int64_t at) { return PublishedValue("", (32 + 16) * 64 + at); }).data(),
                  to.size()),
      0);
}

TEST_F(StoredReading, RefusesWhatIsNotThere) {
  Make("F32", 5);
  std::vector<std::byte> to(4);
  EXPECT_EQ(reader_->Read("9.9", {{0, 0, 1}}, to, ElementReader::Numbers::kAny).code(),
            absl::StatusCode::kInvalidArgument);
  const int64_t elements = ElementsOf(stored_[0].plain.shape);
  EXPECT_EQ(reader_->Read("0.0", {{0, elements, 1}}, to, ElementReader::Numbers::kAny).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace planwright::testing
