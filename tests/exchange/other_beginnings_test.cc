// Names that begin otherwise are found, and what only looks like them is left as it is.
#include "planner/exchange/other_beginnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two layers of five tensors of their own shapes.
TensorShapes Tower(const std::string& begin) {
  TensorShapes shapes;
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t i = 0; i < 5; ++i) shapes[absl::StrCat(begin, "layers.", layer, ".w", i, ".weight")] = {i + 1, 8};
  }
  return shapes;
}

// Without extras.
std::vector<OtherBeginning> Taken(TensorShapes& missing, TensorShapes& unknown) {
  TensorShapes extras;
  return TakeOtherBeginnings(missing, unknown, extras);
}

TensorShapes Both(TensorShapes one, const TensorShapes& other) {
  one.insert(other.begin(), other.end());
  return one;
}

TEST(OtherBeginnings, AreFoundWithAllThatNamesHaveInCommon) {
  struct Case {
    std::string theirs, ours, all_theirs, all_ours;
  };
  for (const Case& one :
       {Case{"visual.", "model.visual.", "visual.layers.", "model.visual.layers."},
        Case{"", "model.", "layers.", "model.layers."}, Case{"model.", "", "model.layers.", "layers."},
        Case{"a.b.", "c.", "a.b.layers.", "c.layers."}}) {
    TensorShapes missing = Tower(one.ours), unknown = Tower(one.theirs);
    missing["lone.weight"] = {3}, unknown["alone.bias"] = {3};
    const auto found = Taken(missing, unknown);
    ASSERT_THAT(found, SizeIs(1)) << one.theirs;
    EXPECT_EQ(found[0].theirs, one.all_theirs);
    EXPECT_EQ(found[0].ours, one.all_ours);
    EXPECT_THAT(found[0].names, SizeIs(10));
    EXPECT_EQ(missing, (TensorShapes{{"lone.weight", {3}}}));
    EXPECT_EQ(unknown, (TensorShapes{{"alone.bias", {3}}}));
  }
}

TEST(OtherBeginnings, OfSeveralPartsAreOneEach) {
  TensorShapes missing = Both(Tower("model.eye."), Tower("model.tongue.")), unknown = Both(Tower("eye."), Tower("t."));
  const auto found = Taken(missing, unknown);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(missing, IsEmpty());
  EXPECT_THAT(unknown, IsEmpty());
}

TEST(OtherBeginnings, AreThoseOfExtrasThatAreNeeded) {
  TensorShapes missing = Both(Tower("eye."), {{"eye.norm.weight", {3}}, {"eye.norm.bias", {3}}});
  TensorShapes unknown = Tower("x.eye.");
  TensorShapes extras = {{"x.eye.norm.weight", {3}}, {"x.eye.norm.bias", {4}}, {"x.eye.head", {3}}};
  const auto found = TakeOtherBeginnings(missing, unknown, extras);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].theirs, "x.eye.");
  EXPECT_EQ(found[0].ours, "eye.");
  EXPECT_THAT(found[0].names, SizeIs(11));
  EXPECT_EQ(missing, (TensorShapes{{"eye.norm.bias", {3}}})) << "another shape";
  EXPECT_EQ(extras, (TensorShapes{{"x.eye.norm.bias", {4}}, {"x.eye.head", {3}}}));
  // They alone are no reason.
  missing = Tower("eye."), extras = Tower("x.eye.");
  unknown.clear();
  EXPECT_THAT(TakeOtherBeginnings(missing, unknown, extras), IsEmpty());
  EXPECT_THAT(extras, SizeIs(10));
}

// What no model has stands before the others.
TEST(OtherBeginnings, AreFoundBehindOthersOfTheFirstWord) {
  TensorShapes missing = Tower("eye."), unknown = Both(Tower("x.eye."), {{"x.bias", {1}}, {"x.a.0.weight", {9}}});
  for (int64_t layer = 0; layer < 40; ++layer) unknown[absl::StrCat("x.ear.", layer, ".weight")] = {7};
  EXPECT_THAT(Taken(missing, unknown), SizeIs(1));
  EXPECT_THAT(missing, IsEmpty());
}

// Tensors of another part, which comes first, have the same ends and shapes as some of this one.
TEST(OtherBeginnings, AreThoseThatExplainTheMost) {
  TensorShapes missing = Tower("eye."), unknown = Both(Tower("x.eye."), Tower("x.ear."));
  for (auto& [name, shape] : unknown) {
    if (name.starts_with("x.ear.layers.1.")) shape = {77};
  }
  const auto found = Taken(missing, unknown);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].theirs, "x.eye.layers.");
  EXPECT_THAT(unknown, SizeIs(10));
  // One layer alone: its number is no part of the beginning.
  missing = Tower("eye.");
  const auto part = Taken(missing, unknown);
  ASSERT_THAT(part, SizeIs(1));
  EXPECT_EQ(part[0].theirs, "x.ear.layers.");
  EXPECT_EQ(part[0].ours, "eye.layers.");
}

TEST(OtherBeginnings, WhatIsNoneIsLeft) {
  const auto untouched = [](const TensorShapes& missing, const TensorShapes& unknown) {
    TensorShapes lacks = missing, has = unknown;
    EXPECT_THAT(Taken(lacks, has), IsEmpty());
    EXPECT_EQ(lacks, missing);
    EXPECT_EQ(has, unknown);
  };
  untouched({}, {});
  untouched({}, Tower("eye."));
  untouched(Tower("eye."), {});
  TensorShapes other_shapes = Tower("eye.");
  for (auto& [name, shape] : other_shapes) shape.push_back(2);
  untouched(Tower("model.eye."), other_shapes);
  const TensorShapes three = {{"b.x", {1}}, {"b.y", {2}}, {"b.z", {3}}};
  untouched(Both(three, {{"c.q", {4}}}), {{"a.x", {1}}, {"a.y", {2}}, {"a.z", {3}}});
  // A part of a word is none.
  untouched({{"a.xx", {1}}, {"a.xy", {1}}, {"a.xz", {1}}, {"a.xw", {1}}},
            {{"x", {1}}, {"y", {1}}, {"z", {1}}, {"w", {1}}});
  // Behind the number of a layer: a line for each layer would be more than one for each kind of tensor.
  TensorShapes ours, theirs;
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* word : {"q", "k", "v", "o"}) {
      ours[absl::StrCat("model.layers.", layer, ".attn.", word)] = {1};
      theirs[absl::StrCat("model.layers.", layer, ".self_attn.", word)] = {1};
    }
  }
  untouched(ours, theirs);
}

// Whatever the names are, what is taken out is explained: there is one of the same shape under the other beginning.
TEST(OtherBeginnings, ExplainWhatTheyTake) {
  std::mt19937 random(7);
  size_t explained = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto some = [&] {
      TensorShapes shapes;
      for (int i = 0; i < 30; ++i) {
        const char* begins[] = {"", "a.", "b.", "a.b.", "0."};
        const char* ends[] = {"a", "b", "0", "a.b", "b.a", "a.0", "b.0", "0.a", "0.b", "a.0.b"};
        shapes[absl::StrCat(begins[random() % 5], ends[random() % 10])] = {static_cast<int64_t>(random() % 8 / 7)};
      }
      return shapes;
    };
    TensorShapes needed = some(), had = some();
    for (const auto& [name, shape] : TensorShapes(needed)) {
      if (had.erase(name) > 0) needed.erase(name);
    }
    TensorShapes missing = needed, unknown = had;
    size_t taken = 0;
    for (const OtherBeginning& one : Taken(missing, unknown)) {
      EXPECT_GE(one.names.size(), 4U);
      for (const std::string& name : one.names) {
        ASSERT_TRUE(name.starts_with(one.theirs));
        const std::string ours = one.ours + name.substr(one.theirs.size());
        ASSERT_TRUE(needed.contains(ours) && had.contains(name)) << name << " " << ours;
        EXPECT_EQ(needed.at(ours), had.at(name));
        EXPECT_FALSE(missing.contains(ours) || unknown.contains(name));
        ++taken;
      }
    }
    EXPECT_EQ(missing.size() + taken, needed.size());
    EXPECT_EQ(unknown.size() + taken, had.size());
    explained += taken;
  }
  EXPECT_GT(explained, 100U);
}

}  // namespace
}  // namespace planwright
