#include "planner/views/show/image_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/sample_images.h"
#include "planner/views/show/show.h"

namespace planwright {

std::string ImagesText(const Plan& plan) {
  if (!RowOf(plan.data.kind).indexed || plan.data.encoders.empty()) return "";
  if (!plan.data.counted.known())
    return "Samples count as full of images: `plan data index RECIPE` counts those of the data.";
  std::string text;
  for (const EncoderData& encoder : plan.data.encoders) {
    const SampleImages images = ImagesOfSample(plan.data, encoder, plan.budget.sequence_length);
    const double of_step = images.mean_images * static_cast<double>(plan.budget.global_samples);
    absl::StrAppend(&text, text.empty() ? "" : " ", Printable(encoder.module), " gets ",
                    absl::StrFormat("%.4g", of_step), " images a step, of ",
                    absl::StrFormat("%.4g", images.mean_patches()),
                    " patches on average, as the index counts: at most ", Counted(images.max_images, "image"), " and ",
                    Counted(images.max_rows, "image token"), " in a sample.");
  }
  return text;
}

std::string PicturesText(const Plan& plan) {
  if (!RowOf(plan.data.kind).indexed || plan.data.encoders.empty()) return "";
  return "Reading and resizing pictures is not in these times: `plan launch RECIPE --try` measures steps with it.";
}

nlohmann::ordered_json ImagesJson(const Plan& plan) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const EncoderData& encoder : plan.data.encoders) {
    const SampleImages images = ImagesOfSample(plan.data, encoder, plan.budget.sequence_length);
    json.push_back({{"encoder", encoder.module},
                    {"known", images.known},
                    {"images_per_step", images.mean_images * static_cast<double>(plan.budget.global_samples)},
                    {"mean_patches", images.mean_patches()},
                    {"max_images_of_sample", images.max_images},
                    {"max_rows_of_sample", images.max_rows}});
  }
  return json;
}

}  // namespace planwright
