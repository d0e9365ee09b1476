// Which of the layouts that searches found is taken, and when no further search begins. Searches are given here, with
// times and a clock of their own.
#include "planner/cli/first/simplest_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/search/tuned_recipe.h"

namespace planwright {
namespace {

using testing::kTiny;
using testing::ReadTuned;
using testing::RequestOf;

// What a search finds: the seconds of a step, 0 if nothing fits, and how long it takes by the clock.
struct Given {
  double step = 0, takes = 0;
};

class SimplestLayout : public ::testing::Test {
 protected:
  // The searches in their order, each with more keys open than the one before.
  SimplestFound Choose(const std::vector<Given>& given) {
    const std::optional<TunedRecipe> recipe = ReadTuned(kTiny, {});
    EXPECT_TRUE(recipe.has_value());
    TuneRequest request = RequestOf(kTiny, {}, {});
    request.seconds = 20, request.clock = [&] { return now_; };
    const RunSearch run = [&](const TuneRequest& narrow, Diagnostics&) -> absl::StatusOr<Found> {
      const size_t number = requests_.size();
      requests_.push_back(narrow), began_.push_back(now_);
      Found found;
      if (number < given.size()) {
        now_ += given[number].takes;
        found.result.fastest = given[number].step;
        if (given[number].step > 0)
          found.result.best.push_back({.line = "search " + std::to_string(number), .seconds = given[number].step});
      }
      return found;
    };
    Diagnostics problems;
    absl::StatusOr<SimplestFound> found = FindSimplestLayout(
        run, [&] { return stopped_after_ > 0 && requests_.size() >= stopped_after_; }, recipe->recipe, request,
        problems);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *std::move(found) : SimplestFound();
  }

  static std::string LineOf(const SimplestFound& found) {
    return found.found.chosen() ? found.found.chosen()->line : "none";
  }

  double now_ = 1000;
  size_t stopped_after_ = 0;
  std::vector<TuneRequest> requests_;
  std::vector<double> began_;
};

// 6 % is the error of predicted times.
TEST_F(SimplestLayout, IsTheFirstOfThoseThatAreEqualWithinTheError) {
  const SimplestFound equal = Choose({{1.059}, {1.04}, {1.02}, {1.01}, {1.0}});
  EXPECT_EQ(LineOf(equal), "search 0");
  EXPECT_EQ(equal.why, "the simplest within 6 % of the fastest that was found (1 s)");
}

TEST_F(SimplestLayout, IsNotTakenIfItIsSlowerThanTheError) {
  EXPECT_EQ(LineOf(Choose({{1.061}, {1.061}, {1.06}, {1.0}, {1.0}})), "search 2");
}

TEST_F(SimplestLayout, IsTheFastestIfNoSimplerOneFits) {
  EXPECT_EQ(LineOf(Choose({{}, {}, {}, {2.0}, {1.0}})), "search 4");
  requests_.clear();
  EXPECT_EQ(LineOf(Choose({{}, {}, {}, {}, {}})), "none");
}

// The first search may split nothing, and the last one everything.
TEST_F(SimplestLayout, SearchesHaveMoreAndMoreKeysOpen) {
  Choose({});
  ASSERT_EQ(requests_.size(), 5u);
  const auto fixes = [&](size_t search, const std::string& key) {
    const std::vector<std::string>& fixed = requests_[search].fixed;
    return std::find(fixed.begin(), fixed.end(), key) != fixed.end();
  };
  const std::string tp = "modules.language.parallel.tp", recompute = "modules.language.recompute",
                    ep = "modules.language.parallel.ep", micro = "batch.micro_samples";
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(fixes(i, micro)) << i;
    EXPECT_EQ(fixes(i, ep), i < 1) << i;
    EXPECT_EQ(fixes(i, recompute), i < 2) << i;
    EXPECT_EQ(fixes(i, tp), i < 3) << i;
  }
  EXPECT_TRUE(requests_[4].fixed.empty());
}

TEST_F(SimplestLayout, NoSearchBeginsOrGoesOnAfterTheEnd) {
  // Those that take what they are given leave the last one the rest, less what its proofs take.
  Choose({{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 12}});
  ASSERT_EQ(requests_.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(requests_[i].seconds, 2) << i;
    EXPECT_EQ(requests_[i].proofs, 2) << i;
  }
  EXPECT_EQ(requests_[4].seconds, 9);
  EXPECT_EQ(requests_[4].proofs, 12);

  requests_.clear(), began_.clear(), now_ = 0;
  const SimplestFound early = Choose({{1.5, 19}, {1.0, 1.5}, {1.0, 5}});
  EXPECT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].seconds, 1);  // what is left
  EXPECT_EQ(requests_[1].proofs, 1);
  EXPECT_EQ(LineOf(early), "search 1");

  requests_.clear(), began_.clear(), now_ = 0;
  EXPECT_EQ(LineOf(Choose({{1.5, 300}, {1.0, 1}})), "search 0");
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(SimplestLayout, IsOfWhatWasFoundBeforeItWasStopped) {
  stopped_after_ = 2;
  EXPECT_EQ(LineOf(Choose({{1.5}, {1.2}, {1.0}, {1.0}, {1.0}})), "search 1");
  EXPECT_EQ(requests_.size(), 2u);
}

}  // namespace
}  // namespace planwright
