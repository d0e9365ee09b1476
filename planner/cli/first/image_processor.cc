#include "planner/cli/first/image_processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/processor_file.h"
#include "planner/cli/first/processor_types.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

using nlohmann::json;

// A whole number above 0, cut to the largest one that a double has with all below it; 0: it is none.
int64_t WholeNumber(const json& value) {
  constexpr double kLargest = 9007199254740992;
  const double number = value.is_number() ? value.get<double>() : 0;
  return number >= 1 && number == std::floor(number) ? static_cast<int64_t>(std::min(number, kLargest)) : 0;
}

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

// The settings of a file, read one after the other. What no recipe can say is kept, to be told of together.
class SettingsReader {
 public:
  SettingsReader(const ProcessorFile& file, const EncoderSizes& encoder, const ModelStatement& statement,
                 const YamlNode& asked, ImageProcessor& into)
      : file_(file), encoder_(encoder), statement_(statement), asked_(asked), into_(into) {}

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
      ReadBounds();
    }
    TellUnread();
  }

  absl::Status Problems() const {
    if (problems_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrJoin(problems_, "\nerror: "), "\n  Put there what is expected, if images are to be made so. Without ",
        file_.within.empty() ? Printable(file_.path)
                             : absl::StrCat("image_processor in ", Printable(file_.path), " and ", kProcessorFile),
        " they are made with ", statement_.first_images->resize, " and ", statement_.first_images->grid));
  }

 private:
  // Null: it is not said.
  const json* At(const std::string& key) {
    read_.insert(key);
    return file_.Find(key);
  }

  void Problem(const std::string& key, const std::string& expected) {
    problems_.push_back(absl::StrCat(file_.Shown(key), " cannot be expressed: ", expected));
  }

  // False: no image of this processor is one of the kind.
  bool ReadType() {
    const ProcessorType* known = FindProcessorType(file_.type);
    const std::string& grid = into_.grid;
    if (!known) {
      TellUnknownType();
    } else if (known->grid != grid) {
      const std::string rule = absl::StrCat("its images have sizes as with data.grid ", known->grid);
      if (grid == "square" || grid == "smart_resize") {
        Problem(file_.type_key, absl::StrCat(rule, ", and those of a ", encoder_.kind, " as with ", grid));
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
    const json* resample = At("resample");
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
      Problem("resample", absl::StrCat("images are resized bilinearly (2) or bicubically (3); data.resize=",
                                       into_.resize, " takes that filter nevertheless"));
    } else {
      into_.resize = filter;
    }
  }

  void ReadPixels() {
    const PixelNorm& norm = *FindPixelNorm(statement_.pixels);
    for (const auto& [key, numbers] : {std::pair("image_mean", norm.mean), std::pair("image_std", norm.deviation)}) {
      const json* said = At(key);
      if (said && !AreAll(*said, numbers))
        Problem(key, absl::StrCat("pixels of a ", encoder_.kind, " are normalized by ", JsonText(json(numbers))));
    }
    const json* factor = At("rescale_factor");
    if (factor && !IsNear(json(factor->is_number() ? factor->get<double>() * 255 : 0), 1))
      Problem("rescale_factor", "pixels are from 0 to 255: 1/255 is expected");
  }

  void ReadSwitches() {
    const auto is = [this](const char* key, bool expected, const char* why) {
      const json* said = At(key);
      if (said && *said != expected) Problem(key, absl::StrCat(why, ": ", expected ? "true" : "false", " is expected"));
    };
    is("do_resize", true, "images are resized");
    is("do_rescale", true, "pixels are normalized");
    is("do_normalize", true, "pixels are normalized");
    is("do_convert_rgb", true, "images of every kind become red, green and blue");
    is("do_pad", false, "images get no border");
    // What has the size of the cut already stays as it is.
    const json *size = At("size"), *squares = At("default_to_square"), *cut = At("crop_size");
    const bool stays = into_.grid == "square" && size &&
                       IsSquare(*size, encoder_.max_image, squares && *squares == true) && cut &&
                       IsSquare(*cut, encoder_.max_image, true);
    const json* crops = At("do_center_crop");
    if (!crops || *crops != true || !stays) is("do_center_crop", false, "images are not cut");
  }

  void IsNumber(const char* key, int64_t of_config, const std::string& what) {
    const json* said = At(key);
    if (said && WholeNumber(*said) != of_config) Problem(key, absl::StrCat("by config.json ", what, " ", of_config));
  }

  void ReadSquare() {
    const json *size = At("size"), *squares = At("default_to_square");
    const int64_t side = encoder_.max_image;
    if (!size || IsSquare(*size, side, squares && *squares == true)) return;
    Problem("size", absl::StrCat(size->is_number() ? "it is the length of the shorter side, and images are squares"
                                                   : "by config.json images are squares",
                                 ": {\"height\": ", side, ", \"width\": ", side, "} is expected"));
  }

  // Whether the class has numbers of pixels where others have lengths of sides.
  bool IsOfPixels() const {
    const ProcessorType* known = FindProcessorType(file_.type);
    return known && std::string_view(known->grid) == "smart_resize";
  }

  // Of an image that is resized, in pixels: `name` of the file or of its size, or a side of the size, as Qwen's have
  // it. 0: none, or no number.
  int64_t Bound(const std::string& name, const std::string& side) {
    const json *said = At(name), *size = At("size");
    const bool own = said != nullptr;
    const bool of_sides = into_.grid == "smart_resize" || IsOfPixels();  // elsewhere these are lengths
    for (const std::string& key : {of_sides ? side : name, name}) {
      if (!said && size && size->is_object() && size->contains(key)) said = &size->at(key);
    }
    if (!said) {
      if (size && size->is_object() && of_sides) Problem("size", absl::StrCat(side, " is missing, or ", name));
      return 0;
    }
    const int64_t pixels = WholeNumber(*said);
    if (pixels == 0) Problem(own ? name : "size", absl::StrCat(own ? name : side, " is a number of pixels above 0"));
    return pixels;
  }

  void ReadBounds() {
    const json* size = At("size");
    const auto is_bound = [](const std::string& key) {
      return key == "shortest_edge" || key == "longest_edge" || key == "min_pixels" || key == "max_pixels";
    };
    bool bounds = !size || size->is_object();
    if (size && size->is_object()) {
      for (const auto& [key, value] : size->items()) bounds = bounds && is_bound(key);
    }
    if (into_.grid != "smart_resize") {
      if (size && !IsOfPixels() &&
          !(size->is_object() && (size->contains("min_pixels") || size->contains("max_pixels"))))
        into_.notes.push_back(absl::StrCat(file_.Shown("size"), " is not read: with data.grid ", into_.grid,
                                           " an image has as many patches as its own size asks for, between "
                                           "data.min_patches and data.max_patches"));
    } else if (!bounds) {
      Problem("size", "{\"shortest_edge\": LEAST, \"longest_edge\": MOST} is expected, both in pixels of an image");
      return;
    }
    const size_t before = problems_.size();
    const int64_t least = Bound("min_pixels", "shortest_edge"), most = Bound("max_pixels", "longest_edge");
    if (problems_.size() > before) return;
    if (least > 0) into_.least_pixels = least;
    into_.most_pixels = most;
    const auto sized = file_.says.find("size");
    CheckBounds(file_.says.contains("min_pixels") || (least > 0 && sized != file_.says.end()));
  }

  // Recipes say these bounds in patches. `said`: whether the file says the least one.
  void CheckBounds(bool said) {
    const int64_t least = into_.least_pixels, most = into_.most_pixels, patch = encoder_.patch * encoder_.patch;
    const int64_t token = patch * encoder_.pixel_shuffle * encoder_.pixel_shuffle;
    const int64_t side = encoder_.max_image / encoder_.patch, all = side * side * patch;
    const bool least_asked = NodeAt(asked_, "data.min_patches"), most_asked = NodeAt(asked_, "data.max_patches");
    const std::string whose =
        said ? ""
             : absl::StrCat(" (the least is that of ", file_.lacks.contains("size") ? file_.type : encoder_.kind, ")");
    const auto wrong = [&](const std::string& which, const std::string& what, const char* mend) {
      problems_.push_back(absl::StrCat(Printable(file_.path), ": images of ", which, " cannot be expressed: ", what,
                                       "; ", mend, "=N, in patches, takes another bound"));
    };
    if (!most_asked && most > 0 && most < token) {
      wrong(absl::StrCat("at most ", WithCommas(most), " pixels"),
            absl::StrCat("the square of an image token has ", token), "data.max_patches");
    } else if (!least_asked && !most_asked && most > 0 && least > most) {
      wrong(absl::StrCat("at least ", WithCommas(least), " and at most ", WithCommas(most), " pixels", whose),
            "the least of these numbers is the larger one", "data.min_patches");
    } else if (!least_asked && least > all) {
      wrong(absl::StrCat("at least ", WithCommas(least), " pixels", whose),
            absl::StrCat("by config.json one has at most ", WithCommas(all)), "data.min_patches");
    } else {
      if (!least_asked) TellPatches("least", "data.min_patches", least);
      if (!most_asked && most < all) TellPatches("most", "data.max_patches", most);
    }
  }

  // Sides of images are computed with the bound itself, so another one within the same patch gives other sides to some.
  void TellPatches(const char* which, const char* key, int64_t pixels) {
    const int64_t patch = encoder_.patch * encoder_.patch, patches = pixels / patch;
    if (pixels % patch == 0) return;
    into_.notes.push_back(absl::StrCat(
        Printable(file_.path), ": ", which, " pixels of an image, ", WithCommas(pixels),
        ", are no whole patches: ", key, "=", patches, " are ", WithCommas(patches * patch), ", and ", patches + 1,
        " are ", WithCommas((patches + 1) * patch), "; some images get another size than in transformers with both"));
  }

  void TellUnread() {
    constexpr size_t kMost = 10;
    std::vector<std::string> unread;
    for (const auto& [key, value] : file_.says.items()) {
      if (!read_.contains(key) && !SettingsWithoutPixels().contains(key) && !key.starts_with("_"))
        unread.push_back(Printable(key));
    }
    if (unread.empty()) return;
    const size_t more = unread.size() - std::min(unread.size(), kMost);
    unread.resize(unread.size() - more);
    into_.notes.push_back(absl::StrCat(Printable(file_.path), ": not read: ", absl::StrJoin(unread, ", "),
                                       more > 0 ? absl::StrCat(" and ", more, " more") : ""));
  }

  const ProcessorFile& file_;
  const EncoderSizes& encoder_;
  const ModelStatement& statement_;
  const YamlNode& asked_;
  ImageProcessor& into_;
  std::set<std::string> read_;
  std::vector<std::string> problems_;
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
