#include "planner/exchange/config_keys.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

// The integer of a JSON number, also of 4.0, as Python may have written it.
std::optional<int64_t> IntegerOf(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kLargestSize)) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::floor(number) != number || std::fabs(number) > static_cast<double>(kLargestSize)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// A key of which two objects say different things; the keys have no order, and null counts as none. Empty: there is
// none.
std::string DifferingKey(const Json& one, const Json& other) {
  for (const auto& [first, second] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    for (const auto& [key, value] : first->items()) {
      if (!value.is_null() && (!second->contains(key) || second->at(key) != value)) return key;
    }
  }
  return "";
}

}  // namespace

bool IsIndex(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string ValueText(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = Printable(JsonText(value));
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string ShortestText(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : std::string();
}

ConfigKeys::ConfigKeys(const Json& keys, std::string path, Findings& findings, ConfigKeys* whole)
    : keys_(keys), path_(std::move(path)), findings_(findings), whole_(whole) {}

std::string ConfigKeys::PathOf(std::string_view name) const {
  if (name.starts_with('/')) return std::string(name.substr(1));
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void ConfigKeys::WrongValue(const std::string& name, const Json& value, const std::string& message) {
  findings_.Problem(PathOf(name), ValueText(value), message);
}

ConfigKeys& ConfigKeys::Inner(const std::string& key, bool list) {
  static const Json kNone = Json::object();
  std::unique_ptr<ConfigKeys>& inner = inner_[key];
  if (inner) return *inner;
  known_.insert(key);
  const auto found = keys_.find(key);
  const bool there = found != keys_.end() && !found->is_null();
  if (there && list && found->is_array()) {
    std::unique_ptr<Json>& elements = lists_[key];
    elements = std::make_unique<Json>(Json::object());
    for (size_t i = 0; i < found->size(); ++i) (*elements)[absl::StrCat(i)] = (*found)[i];
    inner = std::make_unique<ConfigKeys>(*elements, PathOf(key), findings_);
    return *inner;
  }
  if (there && !found->is_object()) WrongValue(key, *found, "is no object");
  inner = std::make_unique<ConfigKeys>(there && found->is_object() ? *found : kNone, PathOf(key), findings_);
  return *inner;
}

std::pair<ConfigKeys*, std::string> ConfigKeys::PlaceOf(const std::string& name) {
  if (name.starts_with('/')) return (whole_ ? whole_ : this)->PlaceOf(name.substr(1));
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {this, name};
  const std::string rest = name.substr(dot + 1);
  return Inner(name.substr(0, dot), IsIndex(rest.substr(0, rest.find('.')))).PlaceOf(rest);
}

const Json* ConfigKeys::Find(const Names& names, std::string* path) {
  const Json* first = nullptr;
  std::string first_name = names.front();
  for (const std::string& name : names) {
    const auto [place, key] = PlaceOf(name);
    place->known_.insert(key);
    const auto found = place->keys_.find(key);
    if (found == place->keys_.end() || found->is_null()) continue;
    const bool objects = first != nullptr && first->is_object() && found->is_object();
    if (first == nullptr || (objects && first->empty())) {
      first = &*found, first_name = name;
    } else if (objects) {
      const std::string differs = found->empty() ? "" : DifferingKey(*first, *found);
      if (!differs.empty())
        findings_.Problem(
            PathOf(name), "",
            absl::StrCat("is another name of ", first_name, ", and says other things: ", Printable(differs)));
    } else if (*first != *found) {
      WrongValue(name, *found, absl::StrCat("is another name of ", first_name, ", which is ", ValueText(*first)));
    }
  }
  if (path != nullptr) *path = PathOf(first_name);
  return first;
}

bool ConfigKeys::Has(const std::string& name) {
  const auto [place, key] = PlaceOf(name);
  place->known_.insert(key);
  return place->keys_.contains(key);
}

std::optional<Said> ConfigKeys::Integer(const Json& value, const std::string& path, bool or_zero) {
  const std::optional<int64_t> size = IntegerOf(value);
  if (size && *size >= (or_zero ? 0 : 1)) return Said{*size, path};
  findings_.Problem(path, ValueText(value), absl::StrCat("is no integer from ", or_zero ? 0 : 1, " to ", kLargestSize));
  return std::nullopt;
}

std::optional<Said> ConfigKeys::Real(const Json& value, const std::string& path, bool or_zero) {
  const double number = value.is_number() ? value.get<double>() : -1.0;
  if (std::isfinite(number) && (number > 0 || (or_zero && number == 0))) return Said{number, path};
  findings_.Problem(path, ValueText(value), or_zero ? "is no number from 0" : "is no number above 0");
  return std::nullopt;
}

std::optional<Said> ConfigKeys::Flag(const Json& value, const std::string& path) {
  if (value.is_boolean()) return Said{value.get<bool>(), path};
  findings_.Problem(path, ValueText(value), "is neither true nor false");
  return std::nullopt;
}

std::optional<Said> ConfigKeys::Word(const Json& value, const std::string& path) {
  if (value.is_string()) return Said{value.get<std::string>(), path};
  findings_.Problem(path, ValueText(value), "is no text");
  return std::nullopt;
}

std::optional<std::set<int64_t>> ConfigKeys::List(const Json& value, const std::string& path) {
  std::set<int64_t> numbers;
  if (!value.is_array()) {
    findings_.Problem(path, ValueText(value), "is no list");
    return std::nullopt;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::optional<Said> number = Integer(value[i], absl::StrCat(path, "[", i, "]"), true);
    if (!number) return std::nullopt;
    numbers.insert(std::get<int64_t>(number->value));
  }
  return numbers;
}

void ConfigKeys::Known(const Names& names) {
  for (const std::string& name : names) {
    const auto [place, key] = PlaceOf(name);
    place->known_.insert(key);
  }
}

void ConfigKeys::RestSaysNothing(const std::string& name, const std::string& why) {
  ConfigKeys& inner = Inner(name);
  inner.rest_says_nothing_ = true;
  std::string names;
  for (const auto& [key, value] : inner.keys_.items()) {
    if (!inner.known_.contains(key)) absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(key));
  }
  if (!names.empty()) findings_.notes.push_back(absl::StrCat("not read of ", inner.path_, ", ", why, ": ", names));
}

void ConfigKeys::Rest(const std::set<std::string>& ignored) {
  for (const auto& [key, inner] : inner_) {
    if (!inner->rest_says_nothing_) inner->Rest(ignored);
  }
  const std::vector<std::string> names(known_.begin(), known_.end());
  for (const auto& [key, value] : keys_.items()) {
    if (known_.contains(key)) continue;
    const std::string where = PathOf(Printable(key));
    if (ignored.contains(PathOf(key))) {
      findings_.ignored.insert(PathOf(key));
      findings_.notes.push_back(absl::StrCat(where, " = ", ValueText(value), " is ignored, as --ignore says"));
    } else if (value.is_null()) {
      findings_.notes.push_back(absl::StrCat(where, " = null is not known"));
    } else {
      const std::string near = NearNameHelp(key, names);
      findings_.Problem(where, ValueText(value), absl::StrCat("is not known", near.empty() ? "" : "; ", near));
    }
  }
}

const ConfigKeys::Names& CommonKeys() {
  static const ConfigKeys::Names names = {"architectures",
                                          "auto_map",
                                          "model_type",
                                          "dtype",
                                          "torch_dtype",
                                          "transformers_version",
                                          "_name_or_path",
                                          "_attn_implementation",
                                          "_attn_implementation_autoset",
                                          "attn_implementation",
                                          "return_dict",
                                          "output_hidden_states",
                                          "output_attentions",
                                          "torchscript",
                                          "use_bfloat16",
                                          "tf_legacy_loss",
                                          "pruned_heads",
                                          "tie_encoder_decoder",
                                          "chunk_size_feed_forward",
                                          "is_encoder_decoder",
                                          "is_decoder",
                                          "cross_attention_hidden_size",
                                          "add_cross_attention",
                                          "finetuning_task",
                                          "id2label",
                                          "label2id",
                                          "tokenizer_class",
                                          "prefix",
                                          "bos_token_id",
                                          "pad_token_id",
                                          "eos_token_id",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "task_specific_params",
                                          "problem_type",
                                          "max_length",
                                          "min_length",
                                          "do_sample",
                                          "early_stopping",
                                          "num_beams",
                                          "num_beam_groups",
                                          "diversity_penalty",
                                          "temperature",
                                          "top_k",
                                          "top_p",
                                          "typical_p",
                                          "repetition_penalty",
                                          "length_penalty",
                                          "no_repeat_ngram_size",
                                          "encoder_no_repeat_ngram_size",
                                          "bad_words_ids",
                                          "num_return_sequences",
                                          "output_scores",
                                          "return_dict_in_generate",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "remove_invalid_values",
                                          "exponential_decay_length_penalty",
                                          "suppress_tokens",
                                          "begin_suppress_tokens",
                                          "use_cache"};
  return names;
}

}  // namespace planwright
