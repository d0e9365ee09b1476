#include "planner/data/samples/permutation.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace planwright {
namespace {

std::vector<int64_t> Permuted(int64_t size, uint64_t seed, const std::string& name) {
  const KeyedPermutation permutation(seed, name, size);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size; ++i) all.push_back(permutation.At(i));
  return all;
}

TEST(KeyedPermutation, HasEveryNumberOnce) {
  for (int64_t size = 1; size < 400; size += 1 + size / 60) {
    std::vector<int64_t> all = Permuted(size, 7, "sources.samples.3.a");
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[i], i) << "of " << size;
  }
  for (int64_t size : {65'535, 65'536, 65'537, 100'000}) {
    std::vector<int64_t> all = Permuted(size, 8, "b");
    std::sort(all.begin(), all.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[i], i) << "of " << size;
  }
}

TEST(KeyedPermutation, AllPermutationsOfAFewNumbersAreEquallyFrequent) {
  std::map<std::vector<int64_t>, int64_t> counts;
  const int64_t draws = 4800;
  for (int64_t epoch = 0; epoch < draws; ++epoch) ++counts[Permuted(4, 5, absl::StrCat("epoch.", epoch))];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [permutation, count] : counts)
    chi_square += static_cast<double>((count - draws / 24) * (count - draws / 24)) / (draws / 24);
  EXPECT_LT(chi_square, 49.7);  // 23 degrees of freedom: one seed in a thousand has more
}

// Where positions go: an equal share of each tenth of the places into each tenth, also of neighbours and of epochs.
TEST(KeyedPermutation, PositionsAreMixed) {
  const int64_t size = 100'000, parts = 10;
  const std::vector<int64_t> all = Permuted(size, 11, "epoch.0"), next = Permuted(size, 11, "epoch.1");
  const auto chi_square = [&](auto&& from, auto&& to) {
    std::vector<int64_t> counts(parts * parts, 0);
    for (int64_t i = 0; i < size; ++i) ++counts[from(i) * parts / size * parts + to(i) * parts / size];
    const double expected = static_cast<double>(size) / (parts * parts);
    double sum = 0;
    for (int64_t count : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
  };
  const double most = 137;  // 99 degrees of freedom: one seed in about 150 has more
  EXPECT_LT(chi_square([](int64_t i) { return i; }, [&](int64_t i) { return all[i]; }), most);
  EXPECT_LT(chi_square([&](int64_t i) { return all[i]; }, [&](int64_t i) { return all[(i + 1) % size]; }), most);
  EXPECT_LT(chi_square([&](int64_t i) { return all[i]; }, [&](int64_t i) { return next[i]; }), most);
  // Few numbers stay where they are, as in a random permutation: one on average.
  int64_t fixed = 0;
  for (int64_t i = 0; i < size; ++i) fixed += all[i] == i;
  EXPECT_LE(fixed, 6);
}

TEST(KeyedPermutation, LargeOnesHaveNoNumberTwice) {
  // Too many numbers to list: no two of a hundred thousand meet, and none leaves the range.
  for (int64_t size : {int64_t{1} << 40, (int64_t{1} << 40) - 1, int64_t{1'000'003}, (int64_t{1} << 33) + 7}) {
    const KeyedPermutation permutation(3, "large", size);
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < 50'000; ++i) seen.insert(seen.end(), {permutation.At(i), permutation.At(size - 1 - i)});
    std::sort(seen.begin(), seen.end());
    EXPECT_TRUE(std::adjacent_find(seen.begin(), seen.end()) == seen.end()) << size;
    EXPECT_GE(seen.front(), 0);
    EXPECT_LT(seen.back(), size);
    EXPECT_GT(seen[seen.size() / 2], size / 2 - size / 50);
    EXPECT_LT(seen[seen.size() / 2], size / 2 + size / 50);
  }
}

TEST(KeyedPermutation, StaysTheSame) {
  // Samples of runs that go on depend on these. Computed by the formulas of the header in Python, in exact fractions.
  EXPECT_EQ(Permuted(10, 1234, "sources.samples.0.captions"), (std::vector<int64_t>{1, 7, 4, 8, 6, 3, 9, 2, 5, 0}));
  const KeyedPermutation large(1234, "sources.documents.captions", int64_t{1} << 40);
  EXPECT_EQ(large.At(0), 700479004834);
  EXPECT_EQ(large.At(1), 20209933586);
  EXPECT_EQ(large.At((int64_t{1} << 40) - 1), 941688996161);
}

}  // namespace
}  // namespace planwright
