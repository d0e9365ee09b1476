#include "tests/plan/statement/key_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace planwright::testing {
namespace {

using std::string;

// A number as the files write it: "1e-30", "1000000".
string NumberText(double number) {
  if (number == std::floor(number) && number < 1e8) return absl::StrCat(static_cast<int64_t>(number));
  return absl::StrReplaceAll(absl::StrCat(number), {{"e+", "e"}, {"e-0", "e-"}});
}

// What a key's line says of its number, behind the type and the layers. `widest`: the end of numbers of this type.
string RangeText(const StatedKey& key, double lowest, double widest) {
  const NumberRange& range = key.range;
  string text;
  if (!range.any() && range.low != lowest)
    absl::StrAppend(&text, range.above ? " above " : " from ", NumberText(range.low));
  if (!range.any() && (range.high != widest || range.below))
    absl::StrAppend(&text, range.below ? " below " : " to ", NumberText(range.high));
  if (!key.default_text.empty()) absl::StrAppend(&text, " = ", key.default_text);
  if (!key.with.empty()) absl::StrAppend(&text, " with ", key.with, " ", absl::StrJoin(key.with_words, " or "));
  return absl::StrCat(text, ": ", key.help);
}

string KeyLine(const StatedKey& key, const ModelStatement& statement) {
  using Form = StatedKey::Form;
  if (key.form == Form::kLayers)
    return key.name == "layers" ? absl::StrCat("layers ", statement.repeated, ": ", key.help)
                                : absl::StrCat("layers pattern", statement.example.empty() ? "" : " such as ",
                                               statement.example, ": ", key.help);
  if (key.form == Form::kSection) {
    return absl::StrCat("section ", key.name, key.of != 0 ? absl::StrCat(" of ", string(1, key.of)) : "",
                        key.required ? " required" : "", ": ", key.help);
  }
  if (key.form == Form::kChoice) {
    const string words = absl::StrJoin(key.words, ", ", absl::PairFormatter(" "));
    return absl::StrCat("choice ", key.name, " ", words, key.required ? "" : " = ", key.default_text, " sets ",
                        key.sets, ": ", key.help);
  }
  const bool real = key.type == StatedKey::Type::kReal;
  return absl::StrCat("key ", key.name, real ? " real" : " int", RangeText(key, real ? 0 : 1, real ? 1e10 : 16777216));
}

string ConstantLine(const StatedConstant& constant, const StatedKey* key) {
  const char* type = constant.flag ? " flag" : constant.real ? " real" : " int";
  const string line = absl::StrCat("constant ", constant.name, type, constant.or_zero && !constant.flag ? " or 0" : "",
                                   constant.of != 0 ? absl::StrCat(" of ", string(1, constant.of)) : "",
                                   constant.otherwise ? absl::StrCat(" else ", constant.otherwise->text()) : "",
                                   constant.given ? " given" : "");
  if (!key) return line;
  const double lowest = constant.or_zero || constant.real ? 0 : 1;
  return line + RangeText(*key, lowest, constant.real ? 1e10 : 16777216);
}

}  // namespace

std::vector<string> KeyLines(const ModelStatement& statement) {
  std::vector<string> lines;
  for (const StatedLayer& layer : statement.layer_kinds) {
    lines.push_back(absl::StrCat("layer ", string(1, layer.letter), " ", layer.word, layer.opens ? " opens" : "", ": ",
                                 layer.title));
  }
  for (const StatedLayer& layer : statement.unbuilt)
    lines.push_back(absl::StrCat("unbuilt ", string(1, layer.letter),
                                 layer.not_with.empty() ? "" : absl::StrCat(" not with ", layer.not_with), ": ",
                                 layer.title));
  for (const StatedKey& key : statement.keys) {
    if (key.form != StatedKey::Form::kConstant) lines.push_back(KeyLine(key, statement));
  }
  for (const StatedConstant& constant : statement.constants) {
    const auto key = std::find_if(statement.keys.begin(), statement.keys.end(), [&](const StatedKey& each) {
      return each.form == StatedKey::Form::kConstant && each.name == constant.name;
    });
    lines.push_back(ConstantLine(constant, key == statement.keys.end() ? nullptr : &*key));
  }
  if (statement.first_module_line) lines.push_back(absl::StrCat("first module ", statement.first_module));
  if (statement.first_images) {
    const StatedImages& images = *statement.first_images;
    lines.push_back(absl::StrCat("first images resize ", images.resize, " grid ", images.grid,
                                 images.least_pixels > 0 ? absl::StrCat(" from ", images.least_pixels) : "",
                                 images.processor ? " or processor" : ""));
  }
  for (const StatedFirst& first : statement.firsts)
    lines.push_back(absl::StrCat("first ", first.key, " is ", first.formula ? first.formula->text() : first.word));
  return lines;
}

}  // namespace planwright::testing
