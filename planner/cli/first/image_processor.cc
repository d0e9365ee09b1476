#include "planner/cli/first/image_processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/processor_file.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

using nlohmann::json;

// The number at the first of these keys that is there, `a` or `a.b`; 0: at none.
int64_t PixelsAt(const json& processor, std::initializer_list<const char*> keys) {
  for (const std::string key : keys) {
    const size_t dot = key.find('.');
    const json* at = &processor;
    if (dot != std::string::npos) {
      const auto outer = at->find(key.substr(0, dot));
      if (outer == at->end() || !outer->is_object()) continue;
      at = &*outer;
    }
    const auto found = at->find(dot == std::string::npos ? key : key.substr(dot + 1));
    if (found != at->end() && found->is_number_integer() && found->get<int64_t>() > 0) return found->get<int64_t>();
  }
  return 0;
}

// Whether a list has these numbers, as configurations round them.
bool AreAll(const json& list, const std::array<double, 3>& numbers) {
  const auto near = [](const json& one, double number) {
    return one.is_number() && std::fabs(one.get<double>() - number) <= 1e-6;
  };
  return list.is_array() && std::equal(list.begin(), list.end(), numbers.begin(), numbers.end(), near);
}

}  // namespace

absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& folder, const EncoderSizes& encoder) {
  const ModelStatement* statement = StatementOf(encoder.kind);
  if (statement == nullptr || !statement->first_images) {
    return ImageProcessor{
        .resize = "bilinear",
        .grid = "ceil",
        .notes = {absl::StrCat("how images of kind ", encoder.kind,
                               " are made is not known: data.resize and data.grid are the defaults")}};
  }
  const StatedImages& own = *statement->first_images;
  ImageProcessor processor{.resize = own.resize, .grid = own.grid, .least_pixels = own.least_pixels};
  if (!own.processor) return processor;
  ABSL_ASSIGN_OR_RETURN(const ProcessorFile file, FindProcessorFile(folder));
  const std::string& path = file.path;
  const json& says = file.says;
  processor.notes = file.notes;
  if (path.empty()) {
    processor.notes.push_back(absl::StrCat(Printable(folder), " has no preprocessor_config.json: images are made with ",
                                           processor.resize, ", as transformers does where none says otherwise"));
    return processor;
  }
  std::vector<std::string> problems;
  const auto problem = [&](const char* key, const std::string& what) {
    problems.push_back(absl::StrCat(file.Shown(key), " cannot be expressed: ", what));
  };
  // Numbers of Pillow's filters.
  const std::map<int64_t, const char*> filters = {{2, "bilinear_8bit"}, {3, "bicubic_8bit"}};
  if (const auto resample = says.find("resample"); resample != says.end() && !resample->is_null()) {
    const auto filter = resample->is_number_integer() ? filters.find(resample->get<int64_t>()) : filters.end();
    if (filter == filters.end())
      problem("resample", "images are resized bilinearly (2) or bicubically (3)");
    else
      processor.resize = filter->second;
  }
  const PixelNorm& norm = *FindPixelNorm(statement->pixels);
  for (const auto& [key, numbers] : {std::pair("image_mean", norm.mean), std::pair("image_std", norm.deviation)}) {
    const auto found = says.find(key);
    if (found == says.end() || found->is_null() || AreAll(*found, numbers)) continue;
    problem(key, absl::StrCat("pixels of a ", encoder.kind, " are normalized by ", json(numbers).dump()));
  }
  for (const char* key : {"do_resize", "do_rescale", "do_normalize"}) {
    if (const auto found = says.find(key); found != says.end() && *found == false)
      problem(key, "images are resized, and their pixels normalized");
  }
  const auto number = [&](const char* key, int64_t of_config, std::string_view what) {
    const auto found = says.find(key);
    if (found != says.end() && !found->is_null() && *found != of_config)
      problem(key, absl::StrCat("by config.json ", std::string(what), " ", of_config));
  };
  number("patch_size", encoder.patch, "a patch has a side of");
  number("merge_size", encoder.pixel_shuffle, "the side of the square of patches that becomes one token is");
  if (processor.grid == "square") {
    const int64_t side = PixelsAt(says, {"size.height"}), width = PixelsAt(says, {"size.width"});
    if (says.contains("size") && !says.at("size").is_null() && (side != encoder.max_image || width != side))
      problem("size", absl::StrCat("by config.json an image has a side of ", encoder.max_image));
  }
  if (!problems.empty()) return absl::FailedPreconditionError(absl::StrJoin(problems, "\nerror: "));
  if (processor.grid == "smart_resize") {
    if (const int64_t least = PixelsAt(says, {"min_pixels", "size.shortest_edge", "size.min_pixels"}); least > 0)
      processor.least_pixels = least;
    processor.most_pixels = PixelsAt(says, {"max_pixels", "size.longest_edge", "size.max_pixels"});
  }
  return processor;
}

}  // namespace planwright
