#include "planner/views/show/image_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/sample_documents.h"
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

std::string DocumentsText(const Plan& plan) {
  if (!plan.data.packed_documents) return "";
  const SampleDocuments documents = DocumentsOfSample(plan.data, plan.budget.sequence_length);
  if (documents.known) {
    return absl::StrFormat("A sample has %.4g documents on average%s: attention computes %.3g %% of its scores.",
                           documents.mean, RowOf(plan.data.kind).indexed ? ", as the index counts" : "",
                           100 * documents.share);
  }
  return RowOf(plan.data.kind).indexed
             ? "Samples count as one document: `plan data index RECIPE` counts the documents of the data."
             : "Samples count as one document: nobody counts those of a stored batch.";
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

nlohmann::ordered_json DocumentsJson(const Plan& plan) {
  const SampleDocuments documents = DocumentsOfSample(plan.data, plan.budget.sequence_length);
  return {{"known", documents.known}, {"documents_of_sample", documents.mean}, {"share_of_scores", documents.share}};
}

}  // namespace planwright
