// The mock source (docs/training/data.md#mock): images of drawn classes, and text that is a function of the classes of
// the sample's own images. So a model can learn it, and a bridge that delivers the rows of another sample shows in the
// loss.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "planner/base/random/philox.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

constexpr double kNoise = 0.1;           // deviation of the noise on a pixel; that of a class's pattern is 1
constexpr int64_t kNoiseItem = 1 << 14;  // pixels that a thread takes at a time

// An index below `count` from a draw in [0, 1). min: the product may round up to `count`.
int64_t Choose(const Philox& draws, int64_t index, int64_t count) {
  return std::min(static_cast<int64_t>(draws.Uniform(index) * count), count - 1);
}

class MockSource : public SampleSource {
 public:
  MockSource(const Plan& plan, int64_t task_seed)
      : data_(plan.data), length_(plan.budget.sequence_length), taken_(ImageTokenIds(plan.data)),
        pad_(PadToken(taken_, data_.vocabulary)), counts_(data_.seed, "mock.image_count"),
        grids_(data_.seed, "mock.image_grid"), classes_(data_.seed, "mock.class"), text_(task_seed, "mock.text"),
        patterns_(task_seed, "mock.pattern"), noise_(data_.seed, "mock.noise") {
    // The stride between the noise draws of two images: the size of the largest.
    for (const auto& grid : data_.image_grids) most_patches_ = std::max(most_patches_, grid[0] * grid[1]);
    // Without an image token the pad token is the last id, which text never reaches.
    if (!taken_.empty()) taken_.push_back(pad_);
    std::sort(taken_.begin(), taken_.end());
  }

  absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const override {
    Sample sample;
    std::vector<int64_t> classes;
    sample.images.resize(data_.encoders.size());
    if (!data_.encoders.empty()) {
      // Sample n owns the draws [n * max_images, (n + 1) * max_images) of images, so no sample depends on another.
      const int64_t images = ImagesOfNumber(number);
      for (int64_t i = 0; i < images; ++i) {
        classes.push_back(ClassOf(number * data_.max_images + i));
        for (size_t e = 0; e < data_.encoders.size(); ++e) {
          const int64_t id = number * data_.max_images + i;
          sample.images[e].push_back(parts == SampleParts::kAll ? DrawImage(id, classes.back(), data_.encoders[e])
                                                                : Image{GridOf(id)[0], GridOf(id)[1], {}});
        }
      }
      if (images == 0) classes.push_back(data_.classes);  // text of its own, so that every sample has a loss
    } else {
      // Without an encoder only the text depends on classes: fill the sequence with texts.
      const int64_t texts = std::max<int64_t>(1, length_ / std::max<int64_t>(1, data_.text_tokens));
      for (int64_t i = 0; i < texts; ++i) classes.push_back(ClassOf(number * texts + i));
    }
    // All images before all texts: a text sees every image. As documents of their own, each image stands before its own
    // text.
    if (!data_.packed_documents) {
      for (size_t i = 0; i < ImagesOf(sample); ++i) AppendImage(i, sample);
    }
    for (size_t i = 0; i < classes.size(); ++i) {
      if (data_.packed_documents && i < ImagesOf(sample)) AppendImage(i, sample);
      for (int64_t k = 0; k < data_.text_tokens; ++k) sample.tokens.push_back(TextToken(classes[i], k));
      EndDocument(data_, sample);
    }
    FinishSample(data_, length_, pad_, sample);
    return sample;
  }

  absl::StatusOr<int64_t> Patches(int64_t number) const override {
    int64_t patches = 0;
    const int64_t images = data_.encoders.empty() ? 0 : ImagesOfNumber(number);
    for (int64_t i = 0; i < images; ++i) {
      const std::vector<int64_t>& grid = GridOf(number * data_.max_images + i);
      patches += grid[0] * grid[1];
    }
    return patches;
  }

  SampleOrigin Origin(int64_t) const override { return {}; }

 private:
  int64_t ImagesOfNumber(int64_t number) const {
    return data_.min_images + Choose(counts_, number, data_.max_images - data_.min_images + 1);
  }

  const std::vector<int64_t>& GridOf(int64_t image) const {
    return data_.image_grids[Choose(grids_, image, data_.image_grids.size())];
  }

  static size_t ImagesOf(const Sample& sample) { return sample.images.empty() ? 0 : sample.images[0].size(); }

  // Every encoder sees the image; its tokens for the first encoder come first.
  void AppendImage(size_t index, Sample& sample) const {
    for (size_t e = 0; e < data_.encoders.size(); ++e) {
      const EncoderData& encoder = data_.encoders[e];
      sample.tokens.insert(sample.tokens.end(), ImageTokens(encoder, sample.images[e][index]), encoder.token);
    }
  }

  int64_t ClassOf(int64_t index) const { return Choose(classes_, index, data_.classes); }

  // The largest id that stands for no image.
  static int64_t PadToken(const std::vector<int64_t>& taken, int64_t vocabulary) {
    int64_t pad = vocabulary - 1;
    while (std::find(taken.begin(), taken.end(), pad) != taken.end()) --pad;
    return pad;
  }

  // Any token id except image tokens and the pad token.
  int64_t TextToken(int64_t image_class, int64_t position) const {
    const int64_t ids = data_.vocabulary - std::max<int64_t>(1, static_cast<int64_t>(taken_.size()));
    int64_t token = Choose(text_, image_class * data_.text_tokens + position, ids);
    for (int64_t taken : taken_) token += token >= taken;  // skips the ids, the smallest first
    return token;
  }

  Image DrawImage(int64_t index, int64_t image_class, const EncoderData& encoder) const {
    const std::vector<int64_t>& grid = GridOf(index);
    Image image{grid[0], grid[1], {}};
    const int64_t of_patch = 3 * encoder.patch * encoder.patch;
    const int64_t values = grid[0] * grid[1] * of_patch, first = index * most_patches_ * of_patch;
    std::vector<double> pattern(of_patch);
    for (int64_t i = 0; i < of_patch; ++i) pattern[i] = patterns_.Normal(image_class * of_patch + i);
    image.patches.resize(values);
    // The noise is nearly all the work of a sample: half a second of one core for an image of 9 million values.
    ForEachItem(threads_, (values + kNoiseItem - 1) / kNoiseItem, [&](int64_t item) {
      const int64_t end = std::min((item + 1) * kNoiseItem, values);
      for (int64_t i = item * kNoiseItem; i < end; ++i)
        image.patches[i] = pattern[i % of_patch] + kNoise * noise_.Normal(first + i);
    });
    return image;
  }

  const DataPlan data_;
  const int64_t length_;
  std::vector<int64_t> taken_;  // ids that no text has, ascending
  const int64_t pad_;
  const Philox counts_, grids_, classes_, text_, patterns_, noise_;
  const int threads_ = ThreadsOfRank();
  int64_t most_patches_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenMock(const Plan& plan, int64_t task_seed) {
  const DataPlan& data = plan.data;
  if (data.vocabulary < MockVocabulary(data)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mock data needs a vocabulary of at least ", MockVocabulary(data),
                     data.image_token >= 0 ? ": images, pad and text" : ": pad and text"));
  }
  if (data.classes < 1 || data.text_tokens < 1)
    return absl::InvalidArgumentError("mock data needs at least one class and one text token");
  if (!data.encoders.empty() && data.max_images > 0 && data.image_grids.empty()) {
    return absl::InvalidArgumentError("mock data for an encoder needs image_grids");
  }
  return std::make_unique<MockSource>(plan, task_seed);
}

}  // namespace planwright
