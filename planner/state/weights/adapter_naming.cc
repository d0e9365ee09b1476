#include "planner/state/weights/adapter_naming.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/utf8.h"
#include "planner/state/weights/adapter_folder.h"

namespace planwright {
namespace {

using Words = std::set<std::string>;

// What PEFT and transformers put in front of the layers of any model, of language models, and of encoders.
const Words& WordsOfAll() {
  static const Words words = {"base_model", "model", "module", "_orig_mod", "transformer", "backbone"};
  return words;
}
const Words& WordsOf(bool encoder) {
  static const Words language = {"language_model", "text_model", "decoder"},
                     image = {"vision_model", "vision_tower", "visual", "vision_encoder", "image_encoder", "encoder"};
  return encoder ? image : language;
}

std::string_view BeginningOf(std::string_view name) { return name.substr(0, name.size() - LayerTail(name).size()); }

void AddWords(std::string_view beginning, Words& words) {
  for (const auto& word : absl::StrSplit(absl::string_view(beginning.data(), beginning.size()), '.', absl::SkipEmpty()))
    words.emplace(word);
}

// Whether beginnings of names are those of a module.
class Beginnings {
 public:
  enum class Whose { kItsOwn, kUnknown, kAnother };

  Beginnings(const Plan& plan, const WeightPart& part) : own_(WordsOfAll()) {
    const Module& module = *part.module;
    const Words& kind = WordsOf(module.has_images);
    own_.insert(kind.begin(), kind.end());
    for (const std::string& name : NamesInFiles(part)) AddWords(BeginningOf(name), own_);
    others_ = WordsOf(!module.has_images);
    for (const Module& other : plan.modules) {
      if (&other == &module) continue;
      for (const Parameter& parameter : other.parameters) AddWords(BeginningOf(parameter.file_name), others_);
    }
  }

  Whose Of(std::string_view beginning) const {
    Words words;
    AddWords(beginning, words);
    Whose whose = Whose::kItsOwn;
    for (const std::string& word : words) {
      if (own_.contains(word)) continue;
      if (others_.contains(word)) return Whose::kAnother;
      whose = Whose::kUnknown;
    }
    return whose;
  }

 private:
  Words own_, others_;
};

}  // namespace

AdapterNaming NamingOfAdapter(const Plan& plan, const WeightPart& part, const std::vector<WantedTensor>& wanted,
                              const WeightFiles& files) {
  using Whose = Beginnings::Whose;
  const Beginnings beginnings(plan, part);
  struct Found {
    const std::string* name = nullptr;
    Whose whose = Whose::kAnother;
  };
  std::map<std::string_view, Found> by_tail;
  for (const auto& [name, tensor] : files.all()) {
    const Whose whose = beginnings.Of(BeginningOf(name));
    const auto [at, added] = by_tail.try_emplace(LayerTail(name), Found{&name, whose});
    if (!added && whose < at->second.whose) at->second = {&name, whose};
  }
  AdapterNaming result;
  for (const WantedTensor& one : wanted) {
    const auto found = by_tail.find(LayerTail(one.file_name));
    const bool there = found != by_tail.end(), taken = there && found->second.whose != Whose::kAnother;
    result.naming.places.push_back({taken ? *found->second.name : one.file_name, -1});
    result.naming.found += taken ? 1 : 0;
    if (!there || found->second.whose == Whose::kItsOwn) continue;
    std::string& beginning = taken ? result.unknown : result.other;
    if (beginning.empty()) beginning = Printable(std::string(BeginningOf(*found->second.name)));
  }
  return result;
}

std::string HintOfAdapterNames(const WeightFiles& files) {
  for (const auto& [name, tensor] : files.all()) {
    const size_t at = name.find(".lora_A.");
    const size_t begin = at + std::string_view(".lora_A.").size(), end = name.rfind(".weight");
    if (at == std::string::npos || end == std::string::npos || end <= begin) continue;
    return absl::StrCat(": names have `.", Printable(name.substr(begin, end - begin)),
                        ".`, the name of an adapter in a state_dict of PEFT: save_pretrained(FOLDER) in Python writes "
                        "them without it");
  }
  return "";
}

}  // namespace planwright
