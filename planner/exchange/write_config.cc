#include "planner/exchange/write_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/bug.h"
#include "planner/exchange/config_dtype.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/said_text.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTransformers[] = "5.23.0";

// A number as the key of its type has it. A whole one of no type is an integer.
Json JsonOf(double number, bool real) {
  if (std::isnan(number)) return nullptr;
  if (!real && std::floor(number) == number) return static_cast<int64_t>(number);
  return number;
}

// Lines of a dialect, backwards: the value of a path.
class DialectWriter {
 public:
  // `language`: in which dialect the language model of a whole is said; null: there is no whole.
  DialectWriter(const Dialect& dialect, const Dialect* language, const Plan& plan, const SaidModel& run,
                const KeptKeys& kept, WrittenConfig& written)
      : dialect_(dialect), language_(language), plan_(plan), run_(run),
        part_(StatementOf(dialect.kind)->has_images ? *run.encoder : *run.language), kept_(kept), written_(written) {}

  // Without what only the whole has.
  Json Write() {
    config_["model_type"] = dialect_.name();
    for (const DialectWrite& write : dialect_.writing) WriteStated(write);
    for (const DialectLine& line : dialect_.lines) {
      const std::string path = PathToWrite(line);
      const auto& unwritten = dialect_.unwritten;
      // A key of the whole is a line of the composite.
      if (path.empty() || path.starts_with('/') || done_.contains(path)) continue;
      if (std::find(unwritten.begin(), unwritten.end(), path) != unwritten.end()) continue;
      if (std::optional<Json> value = ValueOf(line)) Put(path, *std::move(value));
    }
    MakeLists(config_);
    return std::move(config_);
  }

 private:
  // Elements of a list stand in an object at first: they may come in any order.
  void Put(const std::string& path, Json value) {
    Json* place = &config_;
    for (const absl::string_view part : absl::StrSplit(path, '.')) {
      if (!place->is_object()) *place = Json::object();
      place = &(*place)[std::string(part)];
    }
    *place = std::move(value);
  }

  // An object with the keys 0, 1, ... becomes a list.
  static void MakeLists(Json& value) {
    if (!value.is_object() || value.empty()) return;
    for (Json& inner : value) MakeLists(inner);
    Json list = Json::array();
    for (size_t i = 0; i < value.size(); ++i) {
      const auto element = value.find(absl::StrCat(i));
      if (element == value.end()) return;
      list.push_back(*element);
    }
    value = std::move(list);
  }

  void WriteStated(const DialectWrite& write) {
    done_.insert(write.path);
    if (!part_.Has(write.of) || (write.when && !(NumberOf(*write.when) > 0))) return;
    std::optional<Json> value;
    if (!write.value.empty()) {
      value = Json::parse(write.value);
    } else if (write.formula) {
      const double number = NumberOf(*write.formula);
      value = Takes(write.path, DialectNumber::Type::kFlag)
                  ? Json(number > 0)
                  : JsonOf(number, Takes(write.path, DialectNumber::Type::kReal));
    } else if (write.blocks != 0) {
      value = BlocksWith(write.blocks);
    } else if (write.path == "architectures") {
      value = Json::array({dialect_.architecture});
    } else {
      for (const DialectLine& line : dialect_.lines) {
        if (!value && HasPath(line, write.path)) value = ValueOf(line);
      }
    }
    if (!value) return;
    if (const Json* before = KeptInPlaceOf(write.path, *value)) {
      written_.kept.push_back(absl::StrCat(write.path, " ", before->dump(), " of ", kept_.folder, "/", kConfigFile));
      return Put(write.path, *before);
    }
    Put(write.path, *std::move(value));
    if (!write.text.empty()) written_.made_up.push_back(Filled(write.text, part_));
  }

  // The value of a key of the language model that its folder had. One that is too small for the run is none.
  const Json* KeptInPlaceOf(const std::string& path, const Json& value) const {
    const auto found = kept_.values.find(path);
    if (&part_ != (run_.language ? &*run_.language : nullptr) || found == kept_.values.end()) return nullptr;
    return found->second.is_number() && value.is_number() && found->second < value ? nullptr : &found->second;
  }

  // Paths of which a line says what they are.
  static const DialectPaths* PathsOf(const DialectLine& line) {
    if (const auto* number = std::get_if<DialectNumber>(&line)) return &number->paths;
    if (const auto* layers = std::get_if<DialectLayers>(&line)) return &layers->paths;
    if (const auto* check = std::get_if<DialectCheck>(&line)) return &check->paths;
    if (const auto* part = std::get_if<DialectPart>(&line)) return &part->paths;
    if (const auto* token = std::get_if<DialectImageToken>(&line)) return &token->paths;
    const auto* rule = std::get_if<DialectRule>(&line);
    return rule != nullptr && rule->kind == DialectRule::Kind::kOnly ? &rule->paths : nullptr;
  }
  static bool HasPath(const DialectLine& line, const std::string& path) {
    const DialectPaths* paths = PathsOf(line);
    return paths != nullptr && std::find(paths->begin(), paths->end(), path) != paths->end();
  }
  // What is written without a line `write`; empty: nothing.
  static std::string PathToWrite(const DialectLine& line) {
    const auto* number = std::get_if<DialectNumber>(&line);
    const auto* rule = std::get_if<DialectRule>(&line);
    const bool check = std::holds_alternative<DialectCheck>(line) || (rule != nullptr && rule->each);
    const DialectPaths* paths = PathsOf(line);
    return paths == nullptr || check || (number != nullptr && number->local) ? "" : paths->front();
  }

  // None: the model does not have it.
  std::optional<Json> ValueOf(const DialectLine& line) {
    if (const auto* number = std::get_if<DialectNumber>(&line)) return ValueOf(*number);
    if (const auto* layers = std::get_if<DialectLayers>(&line)) return ValueOf(*layers);
    if (const auto* check = std::get_if<DialectCheck>(&line))
      return check->formula ? std::optional<Json>(JsonOf(NumberOf(*check->formula), false)) : std::nullopt;
    if (const auto* rule = std::get_if<DialectRule>(&line))
      return part_.Has(rule->of) ? std::optional<Json>(Json::parse(rule->value)) : std::nullopt;
    if (const auto* part = std::get_if<DialectPart>(&line)) {
      const Dialect* inner = part->encoder ? run_.dialects->Find(part->dialects.front()) : language_;
      return DialectWriter(*inner, nullptr, plan_, run_, kept_, written_).Write();
    }
    const bool token = run_.image_token && std::get<int64_t>(run_.image_token->value) >= 0;
    return token ? Json(std::get<int64_t>(run_.image_token->value)) : Json();
  }

  std::optional<Json> ValueOf(const DialectNumber& number) {
    const Said* said = part_.Find(number.name);
    if (said == nullptr || !part_.Has(number.of)) return std::nullopt;
    if (number.when && !(NumberOf(*number.when) > 0)) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(&said->value)) return Json(*flag);
    if (!said->is_word()) return JsonOf(said->number(), number.type == DialectNumber::Type::kReal);
    for (const auto& [theirs, ours] : number.words) {
      if (ours == said->word()) return Json(theirs);
    }
    return std::nullopt;  // reading it back tells
  }

  std::optional<Json> ValueOf(const DialectLayers& layers) {
    if (layers.form == DialectLayers::Form::kNumber) return Json(part_.LayersBesideTaps());
    if (layers.form == DialectLayers::Form::kBlocks)
      return Json(part_.LayersBesideTaps() / std::max<int64_t>(1, static_cast<int64_t>(layers.places.size())));
    if (layers.form == DialectLayers::Form::kLetters && HasWords()) return std::nullopt;
    if (layers.form == DialectLayers::Form::kLetters) return Json(part_.letters);
    Json words = Json::array();
    for (const char letter : part_.letters) {
      const auto word = std::find_if(layers.words.begin(), layers.words.end(),
                                     [&](const auto& each) { return each.second == letter; });
      words.push_back(word == layers.words.end() ? Json() : Json(word->first));
    }
    return words;
  }

  // The numbers of the blocks with such a layer. Taps are inserted, and count in no other way.
  Json BlocksWith(char letter) const {
    const char taps = part_.statement->TapLetter();
    if (taps != 0 && letter == taps) return BlocksWithTaps(taps);
    std::string letters = part_.letters;
    std::erase(letters, taps);
    size_t of_block = 1;
    for (const DialectLine& line : dialect_.lines) {
      const auto* layers = std::get_if<DialectLayers>(&line);
      if (layers != nullptr && !layers->places.empty()) of_block = layers->places.size();
    }
    std::set<size_t> blocks;
    for (size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] == letter) blocks.insert(i / of_block);
    }
    return Json(blocks);
  }

  Json BlocksWithTaps(char taps) const {
    std::vector<LayerSummary> layers;
    for (const char each : part_.letters) layers.push_back({.kind = each});
    const std::vector<LayerPlace> places = PlacesOf(*part_.statement, layers);
    Json blocks = Json::array();
    for (size_t i = 0; i < places.size(); ++i) {
      if (layers[i].kind == taps) blocks.push_back(places[i].block);
    }
    return blocks;
  }

  // Whether another line has a list of words: one of the two is enough.
  bool HasWords() const {
    return std::any_of(dialect_.lines.begin(), dialect_.lines.end(), [](const DialectLine& line) {
      const auto* layers = std::get_if<DialectLayers>(&line);
      return layers != nullptr && layers->form == DialectLayers::Form::kWords;
    });
  }

  // Whether what reads the path takes a number of this type.
  bool Takes(const std::string& path, DialectNumber::Type type) const {
    return std::any_of(dialect_.lines.begin(), dialect_.lines.end(), [&](const DialectLine& line) {
      const auto* number = std::get_if<DialectNumber>(&line);
      return number != nullptr && number->type == type && HasPath(line, path);
    });
  }

  double NumberOf(const DialectFormula& formula) const {
    const auto token = [](int64_t number) { return number < 0 ? std::nan("") : static_cast<double>(number); };
    return formula.Evaluate([&](const std::string& name) {
      if (name == "sequence") return static_cast<double>(plan_.budget.sequence_length);
      if (name == "end_token") return token(plan_.data.end_token);
      if (name == "pad_token") return token(plan_.data.pad_token);
      constexpr std::string_view kLanguage = "language.";
      if (name.starts_with(kLanguage) && run_.language) return run_.language->NumberOf(name.substr(kLanguage.size()));
      return part_.NumberOf(name);
    });
  }

  const Dialect& dialect_;
  const Dialect* language_;
  const Plan& plan_;
  const SaidModel& run_;
  const SaidPart& part_;
  const KeptKeys& kept_;
  WrittenConfig& written_;
  Json config_ = Json::object();
  std::set<std::string> done_;
};

// Whether `run` has features of inner layers, and is `read` without them.
bool LacksTaps(const SaidPart& run, const SaidPart& read) {
  const char taps = run.statement->TapLetter();
  std::string letters = run.letters;
  return taps != 0 && std::erase(letters, taps) > 0 && letters == read.letters;
}

// A problem for each number of a part that comes back as another one. `alone`: the part is exported without the other.
void ComparePart(const Dialect& dialect, const std::optional<SaidPart>& run, const std::optional<SaidPart>& read,
                 bool alone, Findings& findings) {
  if (!run || !read) return;
  std::set<std::string> told;
  for (const DialectSayable& only : dialect.sayable) {
    const Said* said = run->Find(only.key);
    if (said == nullptr || said->text() == only.value || !told.insert(only.key).second) continue;
    if (run->Says(only)) continue;
    findings.Problem(said->from, said->text(), absl::StrCat("cannot be expressed: ", only.why));
  }
  for (const auto& [key, said] : run->numbers) {
    if (key == "pattern" || key == "layers") {  // they say the same in two ways
      if (alone && LacksTaps(*run, *read)) {
        findings.Problem(said.from, said.text(),
                         "has features of inner layers of an encoder: such a part cannot be exported alone, export "
                         "the whole model, without --module");
      } else if (run->letters != read->letters) {
        findings.Problem(said.from, said.text(),
                         absl::StrCat("cannot be expressed: ", dialect.name(), " has ", read->letters));
      }
      continue;
    }
    const Said* back = read->Find(key);
    // Of what no key says, a run may have any number if nothing that is computed depends on it.
    if (back == nullptr || told.contains(key) || (back->loose && !back->given) || back->text() == said.text()) continue;
    findings.Problem(said.from, said.text(),
                     absl::StrCat("cannot be expressed: ", dialect.name(), " has ", back->text()));
  }
}

// The dialects in which the language model of a whole may be said; of what is no whole, one null.
std::vector<const Dialect*> LanguagesOf(const Dialect& dialect, const DialectSet& dialects) {
  const DialectPart* part = dialect.language();
  if (part == nullptr) return {nullptr};
  std::vector<const Dialect*> found;
  for (const std::string& name : part->dialects) {
    const Dialect* one = dialects.Find(name);
    if (one->where.empty()) found.push_back(one);
  }
  return found;
}

WrittenConfig ConfigIn(const Dialect& dialect, const Dialect* language, const Plan& plan, const SaidModel& run,
                       DType dtype, const KeptKeys& kept, Findings& findings) {
  WrittenConfig written;
  written.dialect = &dialect;
  written.config = DialectWriter(dialect, language, plan, run, kept, written).Write();
  if (!written.config.contains("architectures")) written.config["architectures"] = Json::array({dialect.architecture});
  written.config["dtype"] = TorchName(dtype);
  written.config["transformers_version"] = kTransformers;
  Findings of_reading;
  written.read = ReadModel(written.config, {}, of_reading, *run.dialects);
  for (Finding& problem : of_reading.problems) {
    problem.message = absl::StrCat("is what export would write, and it ", problem.message);
    findings.problems.push_back(std::move(problem));
  }
  const bool alone = !run.encoder || !run.language;
  ComparePart(dialect, run.encoder, written.read.encoder, alone, findings);
  ComparePart(dialect, run.language, written.read.language, alone, findings);
  return written;
}

}  // namespace

WrittenConfig ConfigOf(const Plan& plan, const SaidModel& run, DType dtype, Findings& findings, const KeptKeys& kept) {
  const bool both = run.encoder && run.language;
  const std::string language = run.language ? run.language->statement->kind : "";
  WrittenConfig best;
  Findings of_best;
  for (const Dialect* dialect :
       run.dialects->ToWrite(run.encoder ? run.encoder->statement->kind : language, both ? language : "")) {
    for (const Dialect* said : LanguagesOf(*dialect, *run.dialects)) {
      Findings of_one;
      WrittenConfig one = ConfigIn(*dialect, said, plan, run, dtype, kept, of_one);
      if (best.dialect != nullptr && of_one.problems.size() >= of_best.problems.size()) continue;
      best = std::move(one), of_best = std::move(of_one);
    }
  }
  if (best.dialect == nullptr)
    findings.Problem("modules", "", "are of kinds that no dialect writes a config.json of: name a source with --like");
  std::move(of_best.problems.begin(), of_best.problems.end(), std::back_inserter(findings.problems));
  return best;
}

}  // namespace planwright
