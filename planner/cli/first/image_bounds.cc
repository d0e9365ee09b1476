#include "planner/cli/first/image_bounds.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/processor_file.h"
#include "planner/cli/first/processor_types.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

using nlohmann::json;

class BoundsReader {
 public:
  BoundsReader(ProcessorSettings& settings, const EncoderSizes& encoder, const YamlNode& asked, ImageProcessor& into)
      : file_(settings.file()), settings_(settings), encoder_(encoder), asked_(asked), into_(into) {}

  void Read() {
    const json* size = settings_.At("size");
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
      settings_.Refuse("size",
                       "{\"shortest_edge\": LEAST, \"longest_edge\": MOST} is expected, both in pixels of an image");
      return;
    }
    const size_t before = settings_.problems().size();
    const int64_t least = Bound("min_pixels", "shortest_edge"), most = Bound("max_pixels", "longest_edge");
    if (settings_.problems().size() > before) return;
    if (least > 0) into_.least_pixels = least;
    into_.most_pixels = most;
    const auto sized = file_.says.find("size");
    CheckBounds(file_.says.contains("min_pixels") || (least > 0 && sized != file_.says.end()));
  }

 private:
  // Whether the class has numbers of pixels where others have lengths of sides.
  bool IsOfPixels() const {
    const ProcessorType* known = FindProcessorType(file_.type);
    return known && std::string_view(known->grid) == "smart_resize";
  }

  // Of an image that is resized, in pixels: `name` of the file or of its size, or a side of the size, as Qwen's have
  // it. 0: none, or no number.
  int64_t Bound(const std::string& name, const std::string& side) {
    const json *said = settings_.At(name), *size = settings_.At("size");
    const bool own = said != nullptr;
    const bool of_sides = into_.grid == "smart_resize" || IsOfPixels();  // elsewhere these are lengths
    for (const std::string& key : {of_sides ? side : name, name}) {
      if (!said && size && size->is_object() && size->contains(key)) said = &size->at(key);
    }
    if (!said) {
      if (size && size->is_object() && of_sides) settings_.Refuse("size", absl::StrCat(side, " is missing, or ", name));
      return 0;
    }
    const int64_t pixels = WholeNumber(*said);
    if (pixels == 0)
      settings_.Refuse(own ? name : "size", absl::StrCat(own ? name : side, " is a number of pixels above 0"));
    return pixels;
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
      settings_.Refuse(absl::StrCat(Printable(file_.path), ": images of ", which, " cannot be expressed: ", what, "; ",
                                    mend, "=N, in patches, takes another bound"));
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

  const ProcessorFile& file_;
  ProcessorSettings& settings_;
  const EncoderSizes& encoder_;
  const YamlNode& asked_;
  ImageProcessor& into_;
};

}  // namespace

void ReadImageBounds(ProcessorSettings& settings, const EncoderSizes& encoder, const YamlNode& asked,
                     ImageProcessor& into) {
  BoundsReader(settings, encoder, asked, into).Read();
}

}  // namespace planwright
