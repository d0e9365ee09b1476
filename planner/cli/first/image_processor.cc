#include "planner/cli/first/image_processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/image_bounds.h"
#include "planner/cli/first/processor_file.h"
#include "planner/cli/first/processor_settings.h"
#include "planner/cli/first/processor_types.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

using nlohmann::json;

bool IsNear(const json& value, double number) {
  return value.is_number() && std::fabs(value.get<double>() - number) <= 1e-6 * std::max(1.0, std::fabs(number));
}

// Whether it is these numbers, as configurations round them. One number is that of each channel.
bool AreAll(const json& value, const std::array<double, 3>& numbers) {
  if (!value.is_array())
    return std::all_of(numbers.begin(), numbers.end(), [&](double number) { return IsNear(value, number); });
  return std::equal(value.begin(), value.end(), numbers.begin(), numbers.end(), IsNear);
}

// Whether a size of the processor is a square of this side. `one_number`: whether one number is such a size, and not
// the length of the shorter side.
bool IsSquare(const json& size, int64_t side, bool one_number) {
  const auto is_side = [&](const json& value) { return WholeNumber(value) == side; };
  if (size.is_array()) return size.size() == 2 && std::all_of(size.begin(), size.end(), is_side);
  if (size.is_object())
    return size.size() == 2 && size.contains("height") && size.contains("width") && is_side(size.at("height")) &&
           is_side(size.at("width"));
  return one_number && is_side(size);
}

// A word of `data` that overrides say; empty: none.
std::string AskedWord(const YamlNode& asked, const std::string& key) {
  const YamlNode* node = NodeAt(asked, key);
  const bool is_word = node && node->is_scalar() && std::all_of(node->text.begin(), node->text.end(), [](char c) {
                         return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
                       });
  return is_word ? node->text : "";
}

// The settings of a file, read one after the other.
class SettingsReader {
 public:
  SettingsReader(const ProcessorFile& file, const EncoderSizes& encoder, const ModelStatement& statement,
                 const YamlNode& asked, ImageProcessor& into)
      : file_(file), settings_(file), encoder_(encoder), statement_(statement), asked_(asked), into_(into) {}

  void Read() {
    if (!ReadType()) return;
    ReadFilter();
    ReadPixels();
    ReadSwitches();
    IsNumber("patch_size", encoder_.patch, "a patch has a side of");
    IsNumber("merge_size", encoder_.pixel_shuffle, "the side of the square of patches that becomes one token is");
    if (encoder_.frames > 0) IsNumber("temporal_patch_size", encoder_.frames, "the frames of a patch are");
    if (into_.grid == "square") {
      ReadSquare();
    } else {
      ReadImageBounds(settings_, encoder_, asked_, into_);
    }
    TellUnread();
  }

  absl::Status Problems() const {
    if (settings_.problems().empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrJoin(settings_.problems(), "\nerror: "),
        "\n  Put there what is expected, if images are to be made so. Without ",
        file_.within.empty() ? Printable(file_.path)
                             : absl::StrCat("image_processor in ", Printable(file_.path), " and ", kProcessorFile),
        " they are made with ", statement_.first_images->resize, " and ", statement_.first_images->grid));
  }

 private:
  // False: no image of this processor is one of the kind.
  bool ReadType() {
    const ProcessorType* known = FindProcessorType(file_.type);
    const std::string& grid = into_.grid;
    if (!known) {
      TellUnknownType();
    } else if (known->grid != grid) {
      const std::string rule = absl::StrCat("its images have sizes as with data.grid ", known->grid);
      if (grid == "square" || grid == "smart_resize") {
        settings_.Refuse(file_.type_key, absl::StrCat(rule, ", and those of a ", encoder_.kind, " as with ", grid));
        return false;
      }
      into_.notes.push_back(absl::StrCat(file_.Shown(file_.type_key), ": ", rule, "; ", grid, " is taken"));
    }
    return true;
  }

  void TellUnknownType() {
    std::vector<std::string> lacking;
    for (const char* key : {"resample", "image_mean", "image_std"}) {
      if (!file_.Find(key)) lacking.push_back(key);
    }
    if (!file_.Find("size") && !(file_.Find("min_pixels") && file_.Find("max_pixels"))) lacking.push_back("size");
    const std::string lacks = absl::StrCat(absl::StrJoin(lacking, ", "), " not said: as of ", encoder_.kind);
    if (!file_.type_key.empty()) {
      into_.notes.push_back(absl::StrCat(file_.Shown(file_.type_key),
                                         " is not known: images are made as the settings say that are known",
                                         lacking.empty() ? "" : absl::StrCat("; ", lacks)));
    } else if (!lacking.empty()) {
      into_.notes.push_back(absl::StrCat(Printable(file_.path), " names no image_processor_type: ", lacks));
    }
  }

  void ReadFilter() {
    // Numbers of Pillow's filters.
    static constexpr std::pair<int64_t, const char*> kFilters[] = {{2, "bilinear_8bit"}, {3, "bicubic_8bit"}};
    const json* resample = settings_.At("resample");
    if (!resample) return;
    std::string filter;
    for (const auto& [number, word] : kFilters) {
      if (WholeNumber(*resample) == number) filter = word;
    }
    if (const std::string asked = AskedWord(asked_, "data.resize"); !asked.empty()) {
      if (filter != asked)
        into_.notes.push_back(absl::StrCat(file_.Shown("resample"), filter.empty() ? "" : absl::StrCat(", ", filter),
                                           ": images are made with ", asked, ", as data.resize asks"));
    } else if (filter.empty()) {
      settings_.Refuse("resample", absl::StrCat("images are resized bilinearly (2) or bicubically (3); data.resize=",
                                                into_.resize, " takes that filter nevertheless"));
    } else {
      into_.resize = filter;
    }
  }

  void ReadPixels() {
    const PixelNorm& norm = *FindPixelNorm(statement_.pixels);
    for (const auto& [key, numbers] : {std::pair("image_mean", norm.mean), std::pair("image_std", norm.deviation)}) {
      const json* said = settings_.At(key);
      if (said && !AreAll(*said, numbers))
        settings_.Refuse(key,
                         absl::StrCat("pixels of a ", encoder_.kind, " are normalized by ", JsonText(json(numbers))));
    }
    const json* factor = settings_.At("rescale_factor");
    if (factor && !IsNear(json(factor->is_number() ? factor->get<double>() * 255 : 0), 1))
      settings_.Refuse("rescale_factor", "pixels are from 0 to 255: 1/255 is expected");
  }

  void ReadSwitches() {
    const auto is = [this](const char* key, bool expected, const char* why) {
      const json* said = settings_.At(key);
      if (said && *said != expected)
        settings_.Refuse(key, absl::StrCat(why, ": ", expected ? "true" : "false", " is expected"));
    };
    is("do_resize", true, "images are resized");
    is("do_rescale", true, "pixels are normalized");
    is("do_normalize", true, "pixels are normalized");
    is("do_convert_rgb", true, "images of every kind become red, green and blue");
    is("do_pad", false, "images get no border");
    // What has the size of the cut already stays as it is.
    const json *size = settings_.At("size"), *squares = settings_.At("default_to_square"),
               *cut = settings_.At("crop_size");
    const bool stays = into_.grid == "square" && size &&
                       IsSquare(*size, encoder_.max_image, squares && *squares == true) && cut &&
                       IsSquare(*cut, encoder_.max_image, true);
    const json* crops = settings_.At("do_center_crop");
    if (!crops || *crops != true || !stays) is("do_center_crop", false, "images are not cut");
  }

  void IsNumber(const char* key, int64_t of_config, const std::string& what) {
    const json* said = settings_.At(key);
    if (said && WholeNumber(*said) != of_config)
      settings_.Refuse(key, absl::StrCat("by config.json ", what, " ", of_config));
  }

  void ReadSquare() {
    const json *size = settings_.At("size"), *squares = settings_.At("default_to_square");
    const int64_t side = encoder_.max_image;
    if (!size || IsSquare(*size, side, squares && *squares == true)) return;
    settings_.Refuse("size",
                     absl::StrCat(size->is_number() ? "it is the length of the shorter side, and images are squares"
                                                    : "by config.json images are squares",
                                  ": {\"height\": ", side, ", \"width\": ", side, "} is expected"));
  }

  void TellUnread() {
    constexpr size_t kMost = 10;
    std::vector<std::string> unread = settings_.Unread();
    if (unread.empty()) return;
    const size_t more = unread.size() - std::min(unread.size(), kMost);
    unread.resize(unread.size() - more);
    into_.notes.push_back(absl::StrCat(Printable(file_.path), ": not read: ", absl::StrJoin(unread, ", "),
                                       more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }

  const ProcessorFile& file_;
  ProcessorSettings settings_;
  const EncoderSizes& encoder_;
  const ModelStatement& statement_;
  const YamlNode& asked_;
  ImageProcessor& into_;
};

}  // namespace

absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& folder, const EncoderSizes& encoder,
                                                  const YamlNode& asked) {
  const ModelStatement* statement = StatementOf(encoder.kind);
  const bool known = statement != nullptr && statement->first_images;
  ImageProcessor processor{.resize = "bilinear", .grid = "ceil"};
  if (known) {
    const StatedImages& own = *statement->first_images;
    processor = {.resize = own.resize, .grid = own.grid, .least_pixels = own.least_pixels};
  }
  const std::string resize = AskedWord(asked, "data.resize"), grid = AskedWord(asked, "data.grid");
  if (!resize.empty()) processor.resize = resize;
  if (!grid.empty()) processor.grid = grid;
  if (!known && (resize.empty() || grid.empty())) {
    processor.notes.push_back(absl::StrCat("how images of kind ", encoder.kind, " are made is not known: data.resize=",
                                           processor.resize, " and data.grid=", processor.grid,
                                           resize.empty() && grid.empty() ? " are the defaults"
                                           : resize.empty()               ? " are the default and what was asked for"
                                                                          : " are what was asked for and the default"));
  }
  if (!known || !statement->first_images->processor) {
    const std::string path = absl::StrCat(folder, "/", kProcessorFile);
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
      processor.notes.push_back(absl::StrCat(Printable(path), " is not read: images of kind ", encoder.kind,
                                             " are made with ", processor.resize, " and ", processor.grid));
    return processor;
  }
  ABSL_ASSIGN_OR_RETURN(const ProcessorFile file, FindProcessorFile(folder));
  processor.notes = file.notes;
  if (file.path.empty()) {
    processor.notes.push_back(
        absl::StrCat(Printable(folder), " has no ", kProcessorFile, ": images are made with ", processor.resize,
                     resize.empty() ? ", as transformers does where none says otherwise" : ", as data.resize asks"));
    return processor;
  }
  SettingsReader reader(file, encoder, *statement, asked, processor);
  reader.Read();
  if (absl::Status problems = reader.Problems(); !problems.ok()) return problems;
  return processor;
}

}  // namespace planwright
