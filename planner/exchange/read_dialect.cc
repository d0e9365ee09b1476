#include "planner/exchange/read_dialect.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/exchange/radio_arguments.h"
#include "planner/exchange/read_layers.h"
#include "planner/exchange/said_text.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;
using Type = DialectNumber::Type;
using RuleKind = DialectRule::Kind;

constexpr double kLargestInteger = 1 << 24;

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

// JSON compares 1 and 1.0 as equal, and so does this.
bool IsNothing(const Json& value) {
  return value.is_null() || value == Json(false) || value == Json(0) || (value.is_object() && value.empty());
}

// Whether a key that may only be nothing is a list by its meaning.
bool IsOfLists(const DialectRule& rule) { return rule.otherwise.starts_with('['); }

// Files may have numbers as they are in fp32.
bool IsNear(const Json& found, const Json& wanted, double within) {
  if (found.is_number() && wanted.is_number()) return std::fabs(found.get<double>() - wanted.get<double>()) <= within;
  if (!found.is_array() || !wanted.is_array() || found.size() != wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!IsNear(found[i], wanted[i], within)) return false;
  }
  return true;
}

// A value as people say it: "true", "0 and infinity".
std::string SpokenValue(const Json& value) {
  if (!value.is_array()) return value.is_object() ? "infinity" : ValueText(value);
  std::vector<std::string> items;
  for (const Json& item : value)
    items.push_back(item.is_number() ? ShortestText(item.get<double>()) : SpokenValue(item));
  return Listed(items);
}

class DialectReader {
 public:
  DialectReader(const Dialect& dialect, ConfigKeys& keys, const std::set<std::string>& ignored, SaidModel& model)
      : dialect_(dialect), statement_(*StatementOf(dialect.kind)), keys_(keys), ignored_(ignored), model_(model) {
    part_.statement = &statement_;
    part_.dialect = &dialect;
  }

  void Read() {
    keys_.Known(CommonKeys());
    for (const DialectLine& line : dialect_.lines) std::visit([this](const auto& one) { ReadLine(one); }, line);
    keys_.Rest(ignored_);
    if (!dialect_.composite() || model_.encoder)
      (statement_.has_images ? model_.encoder : model_.language) = std::move(part_);
  }

 private:
  Findings& findings() { return keys_.findings(); }

  void ReadLine(const DialectNumber& number) {
    if (!part_.Has(number.of)) return keys_.Known(number.paths);
    const double holds = number.when ? NumberOf(*number.when) : 1;
    // Of what is a problem it cannot be said which keys there may be.
    if (std::isnan(holds)) return keys_.Known(number.paths);
    if (settled_.contains(number.name) || holds == 0) return;
    if (number.when) settled_.insert(number.name);
    std::string path;
    const Json* value = keys_.Find(number.paths, &path);
    if (number.type == Type::kList) {
      if (value == nullptr) return;
      if (auto list = keys_.List(*value, path)) part_.lists[number.name] = *std::move(list);
      return;
    }
    std::optional<Said> said;
    if (value != nullptr) {
      said = Convert(number, *value, path);
    } else if (number.otherwise.empty()) {
      findings().Problem(path, "", "is missing");
    } else {
      said = Otherwise(number);
    }
    if (!said) return;
    said->loose = number.loose;
    if (number.local) {
      part_.locals[number.name] = *std::move(said);
    } else {
      part_.Set(number.name, *std::move(said));
    }
  }

  std::optional<Said> Convert(const DialectNumber& number, const Json& value, const std::string& path) {
    switch (number.type) {
      case Type::kInteger: return keys_.Integer(value, path, number.or_zero);
      case Type::kReal: return keys_.Real(value, path, number.or_zero);
      case Type::kFlag: return keys_.Flag(value, path);
      case Type::kWord:
      case Type::kList: break;
    }
    const std::optional<Said> word = keys_.Word(value, path);
    if (!word) return std::nullopt;
    std::vector<std::string> words;
    for (const auto& [theirs, ours] : number.words) {
      if (theirs == word->word()) return Said{ours, absl::StrCat(path, " = ", theirs)};
      words.push_back(theirs);
    }
    findings().Problem(path, ValueText(value), absl::StrCat("cannot be expressed, only ", Listed(words)));
    return std::nullopt;
  }

  std::optional<Said> Otherwise(const DialectNumber& number) {
    const std::string& text = number.otherwise;
    if (number.type != Type::kWord && text != "true" && text != "false" && !IsDigit(text.front())) {
      const Said* other = part_.FindName(text);
      return other != nullptr ? std::optional<Said>(*other) : std::nullopt;
    }
    Said said{int64_t{0}, "default of " + dialect_.name(), false, false};
    double real = 0;
    int64_t integer = 0;
    switch (number.type) {
      case Type::kFlag: said.value = text == "true"; break;
      case Type::kInteger:
        Require(absl::SimpleAtoi(text, &integer), "defaults are numbers");
        said.value = integer;
        break;
      case Type::kReal:
        Require(absl::SimpleAtod(text, &real), "defaults are numbers");
        said.value = real;
        break;
      case Type::kWord:
        for (const auto& [theirs, ours] : number.words) {
          if (theirs == text) said.value = ours;
        }
        absl::StrAppend(&said.from, " = ", text);
        break;
      case Type::kList: break;
    }
    return said;
  }

  void ReadLine(const DialectComputed& computed) {
    if (!part_.Has(computed.of) || settled_.contains(computed.name)) return;
    // NaN too: what it is asked of is a problem, or is not there.
    if (computed.when && !(NumberOf(*computed.when) > 0)) return;
    if (computed.when) settled_.insert(computed.name);
    const std::string from = FilledHere(computed.source);
    if (!computed.formula) return part_.Set(computed.name, Said{computed.word, from, computed.loose, false});
    const double number = NumberOf(*computed.formula);
    const StatedConstant& constant = *ConstantOfKey(statement_, *FindDialectKey(statement_, computed.name));
    const bool fits = constant.real   ? std::isfinite(number)
                      : constant.flag ? number == 0 || number == 1
                                      : std::floor(number) == number && number >= (constant.or_zero ? 0 : 1) &&
                                            number <= kLargestInteger;
    if (fits) {
      Said said{number, from, computed.loose, false};
      if (constant.flag) {
        said.value = number != 0;
      } else if (!constant.real) {
        said.value = static_cast<int64_t>(number);
      }
      part_.Set(computed.name, std::move(said));
    } else if (findings().problems.empty()) {
      findings().Problem(from.empty() ? keys_.PathOf(computed.name) : from, "",
                         absl::StrCat("makes ", computed.name, " ", ShortestText(number), ", which is no ",
                                      constant.real ? "number" : "whole number", " that a recipe may have"));
    }
  }

  // All of them at the first one, as one may say what another one leaves open.
  void ReadLine(const DialectLayers&) {
    if (layers_) return;
    layers_ = ReadLayers(dialect_, statement_, keys_, [this](std::string_view name, int64_t block) {
      if (!name.starts_with(kBlockIsIn)) return part_.NumberOf(name);
      const auto list = part_.lists.find(name.substr(kBlockIsIn.size()));
      return list != part_.lists.end() && list->second.contains(block) ? 1.0 : 0.0;
    });
    part_.letters = layers_->letters;
    part_.layers = layers_->count;
    if (!layers_->path.empty()) part_.SetLayers(layers_->path);
  }

  // The place of a block's number in the list is the number of the layer behind it.
  void ReadLine(const DialectInsert& insert) {
    if (insert.paths.empty()) return InsertInLanguage(insert.letter);
    std::string path;
    const Json* value = keys_.Find(insert.paths, &path);
    Json list = Json::array();
    if (value != nullptr) {
      list = *value;
    } else if (keys_.Has(insert.paths.front())) {
      list = Json();
    } else if (!insert.otherwise.empty()) {
      list = Json::parse(insert.otherwise);
    }
    const std::optional<std::set<int64_t>> blocks = keys_.List(list, path);
    if (!blocks || !layers_ || part_.letters.empty()) return;
    if (blocks->size() != list.size() || !std::is_sorted(list.begin(), list.end()))
      return keys_.WrongValue(insert.paths.front(), list, "cannot be expressed, only numbers that ascend");
    if (!part_.InsertBehind(*blocks, insert.letter, path))
      keys_.WrongValue(insert.paths.front(), list,
                       absl::StrCat("cannot be expressed: there are ", part_.LayersBesideTaps(), " blocks"));
  }

  void InsertInLanguage(char letter) {
    if (!model_.language || model_.language->letters.empty()) return;
    std::set<int64_t> first;
    for (const char each : part_.letters) {
      if (each == letter) first.insert(static_cast<int64_t>(first.size()));
    }
    if (first.empty()) return;
    const Said* said = part_.Find("pattern");
    const std::string from = said != nullptr ? said->from : "";
    if (model_.language->statement->FindLayer(letter) == nullptr) {
      findings().Problem(from, "", "has features of inner layers, which the language model cannot take");
    } else if (!model_.language->InsertBehind(first, letter, from)) {
      findings().Problem(from, "", absl::StrCat("has ", first.size(), ", more than the language model has blocks"));
    }
  }

  void ReadLine(const DialectCheck& check) {
    std::string path;
    const Json* value = keys_.Find(check.paths, &path);
    if (value == nullptr || !check.formula) return;
    const bool of_layers = check.formula->text() == "layers";
    const std::optional<Said> said = keys_.Integer(*value, path, of_layers);
    const double wanted = NumberOf(*check.formula);
    if (!said || std::isnan(wanted) || said->number() == wanted) return;
    const std::string& text = check.formula->text();
    if (of_layers && !(layers_ && layers_->right)) return;
    const Said* source = FindName(text);
    findings().Problem(
        path, said->text(),
        of_layers ? absl::StrCat("is not the number of layers in ", layers_->path, ": ", part_.layers)
                  : absl::StrCat("is not ", source ? source->from : text, ", which is ", ShortestText(wanted)));
  }

  void ReadLine(const DialectRule& rule) {
    for (const std::string& path : rule.paths) {
      if (path.ends_with(".*")) {
        keys_.RestSaysNothing(path.substr(0, path.size() - 2), rule.why);
      } else if (rule.kind == RuleKind::kSilent || !part_.Has(rule.of)) {
        keys_.Known({path});
      } else if (const Json* value = keys_.Find({path})) {
        ReadRule(rule, path, *value);
      } else if (!rule.otherwise.empty() && !keys_.Has(path)) {
        findings().Problem(
            keys_.PathOf(path), "",
            absl::StrCat("is missing, and is then ", rule.otherwise, ", which cannot be expressed: ", rule.why));
      } else if (!rule.otherwise.empty() && rule.kind == RuleKind::kOnly) {
        ReadRule(rule, path, Json());  // null is not what the key is where it is not there
      }
    }
  }

  void ReadRule(const DialectRule& rule, const std::string& path, const Json& value) {
    if (rule.kind == RuleKind::kOnly) {
      const Json wanted = Json::parse(rule.value);
      if (rule.each && !value.is_array()) return keys_.WrongValue(path, value, "is no list");
      for (size_t i = 0; rule.each && i < value.size(); ++i) {
        if (value[i] != wanted)
          keys_.WrongValue(absl::StrCat(path, "[", i, "]"), value[i],
                           absl::StrCat("cannot be expressed, only ", SpokenValue(wanted), ": ", rule.why));
      }
      if (rule.each) return;
      if (rule.within ? IsNear(value, wanted, *rule.within) : value == wanted) return;
      keys_.WrongValue(path, value,
                       rule.within ? absl::StrCat("cannot be expressed: ", rule.why, ", ", ValueText(wanted))
                                   : absl::StrCat("cannot be expressed, only ", SpokenValue(wanted), ": ", rule.why));
    } else if (rule.kind == RuleKind::kNothing) {
      if (IsNothing(value) || (IsOfLists(rule) && value.is_array() && value.empty())) return;
      keys_.WrongValue(path, value,
                       absl::StrCat("cannot be expressed, only ",
                                    IsOfLists(rule) ? "an empty list: " : "null, false or 0: ", rule.why));
    } else {
      if (rule.unless) {
        const double number = value.is_number() ? value.get<double>() : std::nan("");
        const bool right = std::isfinite(number) && number >= *rule.unless;
        if (!right && rule.kind == RuleKind::kNote)
          keys_.WrongValue(path, value, absl::StrCat("is no number from ", ShortestText(*rule.unless)));
        if (!right || number == *rule.unless) return;
      }
      const bool note = rule.kind == RuleKind::kNote;
      (note ? findings().notes : part_.copied)
          .push_back(absl::StrCat(keys_.PathOf(path), " = ", ValueText(value),
                                  note ? " is not taken over: " : " is copied: ", rule.why));
    }
  }

  void ReadLine(const DialectTell& tell) {
    if (!(NumberOf(tell.when) > 0)) return;
    if (tell.refused.empty()) {
      findings().notes.push_back(FilledHere(tell.text));
    } else if (const Said* said = FindName(tell.refused)) {
      findings().Problem(said->from, said->text(), FilledHere(tell.text));
    }
  }

  void ReadLine(const DialectImageToken& token) {
    std::string path;
    if (const Json* value = keys_.Find(token.paths, &path)) model_.image_token = keys_.Integer(*value, path, true);
  }

  void ReadLine(const DialectFunction& function) {
    Require(function.name == kRadioArguments, "a function of this name reads keys");
    ReadRadioArguments(keys_, part_);
  }

  // The object of a part, read by its own dialect.
  void ReadLine(const DialectPart& part) {
    std::string path;
    const Json* object = keys_.Find(part.paths, &path);
    if (object == nullptr) return findings().Problem(part.paths.front(), "", "is missing");
    if (!object->is_object()) return findings().Problem(path, ValueText(*object), "is no object");
    const std::string type = TypeOfObject(*object, path + ".", findings());
    const Dialect* chosen = nullptr;
    const Dialect* of_type = model_.dialects->OfType(type);
    std::vector<std::string> known;
    for (const std::string& name : part.dialects) {
      const Dialect* one = model_.dialects->Find(name);
      if (!one->where.empty()) {
        if (IsWhere(*one, *object)) chosen = one;
        continue;
      }
      known.push_back(name);
      // Some releases call a part what the whole is.
      if (chosen == nullptr && (type.empty() || one == of_type || of_type == &dialect_)) chosen = one;
    }
    if (chosen == nullptr) {
      const std::string* why = model_.dialects->RefusalOf(type);
      return findings().Problem(path + ".model_type", ValueText(Json(type)),
                                why ? absl::StrCat("cannot be expressed: ", *why, "; only ", Listed(known), " can")
                                    : absl::StrCat("cannot be expressed, only ", Listed(known)));
    }
    ConfigKeys inner(*object, path, findings(), &keys_);
    DialectReader(*chosen, inner, ignored_, model_).Read();
    if (!part.encoder || !model_.encoder) return;
    // The lines that follow are of the encoder, beside what its own dialect has said.
    part_ = *model_.encoder;
  }

  const Said* FindName(std::string_view name) const {
    if (dialect_.composite() || !dialect_.folder) {
      constexpr std::string_view kLanguage = "language.", kEncoder = "encoder.";
      if (name.starts_with(kLanguage))
        return model_.language ? model_.language->FindName(name.substr(kLanguage.size())) : nullptr;
      if (name.starts_with(kEncoder)) return part_.FindName(name.substr(kEncoder.size()));
    }
    return part_.FindName(name);
  }

  double NumberOf(const DialectFormula& formula) const {
    return formula.Evaluate([this](std::string_view name) {
      const bool given = name.starts_with("given(");
      const std::string_view inner = given ? name.substr(6, name.size() - 7) : name;
      if (inner == "layers" || (!inner.starts_with("language.") && !given)) return part_.NumberOf(inner);
      const Said* said = FindName(inner);
      if (given) return said != nullptr && said->given ? 1.0 : 0.0;
      return said != nullptr ? said->number() : std::nan("");
    });
  }

  std::string FilledHere(const std::string& text) const {
    return Filled(text, [this](std::string_view name) { return FindName(name); });
  }

 private:
  const Dialect& dialect_;
  const ModelStatement& statement_;
  ConfigKeys& keys_;
  const std::set<std::string>& ignored_;
  SaidModel& model_;
  SaidPart part_;
  std::optional<SaidLayers> layers_;
  std::set<std::string> settled_;  // keys of which a line with a condition held
};

}  // namespace

void ReadByDialect(const Dialect& dialect, ConfigKeys& keys, const std::set<std::string>& ignored, SaidModel& model) {
  DialectReader(dialect, keys, ignored, model).Read();
}

bool IsWhere(const Dialect& dialect, const Json& object) {
  return std::any_of(dialect.where.begin(), dialect.where.end(), [&](const std::string& key) {
    const bool inner = key.ends_with(".*");
    const auto found = object.find(inner ? key.substr(0, key.size() - 2) : key);
    return found != object.end() && (inner ? found->is_object() : !found->is_null());
  });
}

std::string TypeOfObject(const Json& object, const std::string& path, Findings& findings) {
  const auto type = object.find("model_type");
  if (type == object.end() || type->is_null()) return "";
  if (type->is_string()) return type->get<std::string>();
  findings.Problem(path + "model_type", ValueText(*type), "is no text");
  return "";
}

}  // namespace planwright
