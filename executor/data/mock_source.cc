// The mock source (docs/training/data.md#mock): images of drawn classes, and text that is a function of the classes of
// the sample's own images. So a model can learn it, and a bridge that delivers the rows of another sample shows in the
// loss.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "executor/data/sample_source.h"
#include "executor/random/philox.h"

namespace planwright::executor {
namespace {

constexpr double kNoise = 0.1;  // deviation of the noise on a pixel; that of a class's pattern is 1

// An index below `count` from a draw in [0, 1). min: the product may round up to `count`.
int64_t Choose(const Philox& draws, int64_t index, int64_t count) {
  return std::min(static_cast<int64_t>(draws.Uniform(index) * count), count - 1);
}

class MockSource : public SampleSource {
 public:
  explicit MockSource(const Plan& plan)
      : data_(plan.data), length_(plan.budget.sequence_length),
        pad_(data_.image_token == data_.vocabulary - 1 ? data_.vocabulary - 2 : data_.vocabulary - 1),
        patch_values_(3 * data_.patch * data_.patch), counts_(data_.seed, "mock.image_count"),
        grids_(data_.seed, "mock.image_grid"), classes_(data_.seed, "mock.class"), text_(data_.seed, "mock.text"),
        patterns_(data_.seed, "mock.pattern"), noise_(data_.seed, "mock.noise") {
    // The stride between the noise draws of two images: the size of the largest.
    for (const auto& grid : data_.image_grids) most_patches_ = std::max(most_patches_, grid[0] * grid[1]);
  }

  absl::StatusOr<Sample> Get(int64_t number) override {
    Sample sample;
    std::vector<int64_t> classes;
    if (data_.patch > 0) {
      // Sample n owns the draws [n * max_images, (n + 1) * max_images) of images, so no sample depends on another.
      const int64_t images = Choose(counts_, number, data_.max_images + 1);
      for (int64_t i = 0; i < images; ++i) {
        classes.push_back(ClassOf(number * data_.max_images + i));
        sample.images.push_back(DrawImage(number * data_.max_images + i, classes.back()));
        sample.tokens.insert(sample.tokens.end(), ImageTokens(data_, sample.images.back()), data_.image_token);
      }
      if (images == 0) classes.push_back(data_.classes);  // text of its own, so that every sample has a loss
    } else {
      // Without an encoder only the text depends on classes: fill the sequence with texts.
      const int64_t texts = std::max<int64_t>(1, length_ / std::max<int64_t>(1, data_.text_tokens));
      for (int64_t i = 0; i < texts; ++i) classes.push_back(ClassOf(number * texts + i));
    }
    for (int64_t image_class : classes) {
      for (int64_t i = 0; i < data_.text_tokens; ++i) sample.tokens.push_back(TextToken(image_class, i));
    }
    sample.tokens.resize(length_, pad_);
    SetLabels(data_.image_token, pad_, sample);
    return sample;
  }

 private:
  int64_t ClassOf(int64_t index) const { return Choose(classes_, index, data_.classes); }

  // Any token id except the image token (if there is one) and the pad token.
  int64_t TextToken(int64_t image_class, int64_t position) const {
    const bool images = data_.image_token >= 0;
    int64_t token = Choose(text_, image_class * data_.text_tokens + position, data_.vocabulary - (images ? 2 : 1));
    if (!images) return token;  // pad is the last id
    // Skip the two ids, the smaller one first.
    for (int64_t taken : {std::min(data_.image_token, pad_), std::max(data_.image_token, pad_)})
      token += token >= taken;
    return token;
  }

  Image DrawImage(int64_t index, int64_t image_class) const {
    const std::vector<int64_t>& grid = data_.image_grids[Choose(grids_, index, data_.image_grids.size())];
    Image image{grid[0], grid[1], {}};
    const int64_t values = grid[0] * grid[1] * patch_values_, first = index * most_patches_ * patch_values_;
    std::vector<double> pattern(patch_values_);
    for (int64_t i = 0; i < patch_values_; ++i) pattern[i] = patterns_.Normal(image_class * patch_values_ + i);
    image.patches.resize(values);
    for (int64_t i = 0; i < values; ++i)
      image.patches[i] = pattern[i % patch_values_] + kNoise * noise_.Normal(first + i);
    return image;
  }

  const DataPlan data_;
  const int64_t length_, pad_, patch_values_;
  const Philox counts_, grids_, classes_, text_, patterns_, noise_;
  int64_t most_patches_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenMock(const Plan& plan) {
  const DataPlan& data = plan.data;
  const bool images = data.image_token >= 0;
  if (data.vocabulary < (images ? 3 : 2)) {
    return absl::InvalidArgumentError(
        images ? "mock data with images needs a vocabulary of at least 3: image, pad and text"
               : "mock data needs a vocabulary of at least 2: pad and text");
  }
  if (data.classes < 1 || data.text_tokens < 1)
    return absl::InvalidArgumentError("mock data needs at least one class and one text token");
  if (data.patch > 0 && data.max_images > 0 && data.image_grids.empty()) {
    return absl::InvalidArgumentError("mock data for an encoder needs image_grids");
  }
  return std::make_unique<MockSource>(plan);
}

}  // namespace planwright::executor
